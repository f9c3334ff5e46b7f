// deltazero verify RUN_A RUN_B: are two runs the same, bit for bit, and if not, where do they part.
#include "eval/verify.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"

namespace dz::cli {

void add_verify(CLI::App& app) {
  struct Options {
    std::string a, b;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("verify", "compare two runs bit for bit: certificates of common steps, checkpoints of the same step");
  verb->add_option("RUN_A", options->a, "run directory, or one checkpoint")->required();
  verb->add_option("RUN_B", options->b, "the other")->required();
  verb->add_flag("--json", options->json, "one JSON object on standard output");
  verb->footer(
      "exit 0: the same (DELTA 0); 1: different, with the first step, tensor and element; 2: nothing in common; 65: a checkpoint is damaged");
  verb->callback([options] {
    const eval::Verification result = eval::verify(options->a, options->b);
    std::fputs((options->json ? to_json(result) : to_text(result)).c_str(), stdout);
    if (!result.same()) set_exit_code(static_cast<int>(result.nothing_in_common() ? ExitCode::kNothingToCompare : ExitCode::kDifferent));
  });
}

}  // namespace dz::cli
