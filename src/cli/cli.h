// The command line: one verb a file. A verb adds its subcommand and a callback that does the work and throws dz::Error.
#pragma once

namespace CLI {
class App;
}

namespace dz::cli {

// Parses, runs the verb, prints errors; the exit code of the process (docs/exit-codes.md).
int run(int argc, char** argv);

// A verb that ends without an error but with another code than 0 (verify, parity) calls this from its callback.
void set_exit_code(int code);

// Each adds its verb to the program, in the order of --help.
void add_train(CLI::App& app);
void add_eval(CLI::App& app);
void add_parity(CLI::App& app);
void add_plan(CLI::App& app);
void add_convert(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_tokenizer_train(CLI::App& app);
void add_encode(CLI::App& app);
void add_decode(CLI::App& app);
void add_report(CLI::App& app);
void add_verify(CLI::App& app);
void add_audit(CLI::App& app);
void add_inspect(CLI::App& app);
void add_index(CLI::App& app);
void add_mix(CLI::App& app);
void add_order(CLI::App& app);
void add_generate(CLI::App& app);
void add_doctor(CLI::App& app);
void add_bench(CLI::App& app);

}  // namespace dz::cli
