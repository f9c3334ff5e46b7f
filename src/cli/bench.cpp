// deltazero bench: how fast parts of the program are on this machine.
#include "cli/bench.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/cli.h"

namespace dz::cli {

std::string seconds_in_an_hour(const std::string& text) {
  double seconds = 0;
  if (CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 3600) return "";
  return "found " + text + ", expected seconds from 0 to 3600";
}

void add_bench(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("bench", "speed of a part of the program on this machine");
  verb->require_subcommand(1);
  verb->preparse_callback([](size_t) { std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); });  // a row is seen when it is measured, in a pipe too
  add_bench_attention(*verb);
  add_bench_decode(*verb);
  add_bench_gemm(*verb);
  add_bench_passes(*verb);
  add_bench_step(*verb);
  add_bench_tokenizer(*verb);
}

}  // namespace dz::cli
