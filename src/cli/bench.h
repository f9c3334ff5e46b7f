// The parts of `deltazero bench`, one a file; each adds its subcommand.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dz::cli {

// A check of an option: empty for a number from 0 to 3,600, else what is wrong. CLI::Range lets nan pass.
std::string seconds_in_an_hour(const std::string& text);

void add_bench_attention(CLI::App& bench);
void add_bench_decode(CLI::App& bench);
void add_bench_gemm(CLI::App& bench);
void add_bench_passes(CLI::App& bench);
void add_bench_step(CLI::App& bench);
void add_bench_tokenizer(CLI::App& bench);

}  // namespace dz::cli
