#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/check.h"
#include "base/error.h"

namespace dz::cli {
namespace {

int exit_code = 0;

void print_error(const char* message) { std::fprintf(stderr, "error: %s\n", message); }

}  // namespace

void set_exit_code(int code) { exit_code = code; }

int run(int argc, char** argv) {
  CLI::App app{"deltazero: pretrains OLMo 3-class language models and proves every step"};
  app.name("deltazero");
  app.require_subcommand(1);
  app.set_version_flag("--version", "deltazero " DZ_VERSION);
  add_train(app);
  add_eval(app);
  add_parity(app);
  add_tokenize(app);
  add_tokenizer_train(app);
  add_encode(app);
  add_decode(app);
  add_report(app);
  add_verify(app);
  add_inspect(app);
  add_generate(app);
  add_doctor(app);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return static_cast<int>(ExitCode::kUsage);
  } catch (const Error& error) {
    print_error(error.what());
    return static_cast<int>(error.code());
  } catch (const BugError& error) {
    print_error(error.what());
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return static_cast<int>(ExitCode::kBug);
}

}  // namespace dz::cli
