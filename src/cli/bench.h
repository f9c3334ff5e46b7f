// The parts of `deltazero bench`, one a file; each adds its subcommand.
#pragma once

namespace CLI {
class App;
}

namespace dz::cli {

void add_bench_attention(CLI::App& bench);
void add_bench_decode(CLI::App& bench);
void add_bench_gemm(CLI::App& bench);
void add_bench_passes(CLI::App& bench);
void add_bench_step(CLI::App& bench);
void add_bench_tokenizer(CLI::App& bench);

}  // namespace dz::cli
