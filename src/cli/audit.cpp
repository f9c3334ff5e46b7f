// deltazero audit RUN: were the instances that the run consumed those of its plan, and each once?
#include "train/audit.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"

namespace dz::cli {

void add_audit(CLI::App& app) {
  struct Options {
    std::string run;
    train::AuditOptions audit;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("audit", "prove which data a run consumed: its ledger against the plan of its recipe");
  verb->add_option("RUN", options->run, "run directory")->required();
  verb->add_flag("--json", options->json, "one JSON object on standard output");
  verb->add_flag("--tokens", options->audit.tokens, "also read every batch again and compare it with its digest in metrics.jsonl");
  verb->add_option("--set", options->audit.sets, "change a key of the run's recipe, as for data that was moved")
      ->type_name("recipe.data.KEY=VALUE")
      ->take_all()
      ->expected(1);
  verb->footer("exit 0: as planned; 1: different, the first such step is named; 2: the ledger holds no step; 65: damaged; 66: no run or no ledger");
  verb->callback([options] {
    ThreadPool pool(default_threads());
    const train::Audit audit = train::audit_run(options->run, options->audit, pool);
    const std::string text = options->json ? train::to_json(audit) : train::to_text(audit);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (audit.last_step == 0) set_exit_code(static_cast<int>(ExitCode::kNothingToCompare));
    if (audit.difference) set_exit_code(static_cast<int>(ExitCode::kDifferent));
  });
}

}  // namespace dz::cli
