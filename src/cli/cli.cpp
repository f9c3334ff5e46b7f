#include "cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/check.h"
#include "base/error.h"
#include "train/fields.h"

namespace dz::cli {
namespace {

int exit_code = 0;

void print_error(const char* message) { std::fprintf(stderr, "error: %s\n", message); }

// CLI11 would only say that a subcommand is required.
void refuse_unknown_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return;
  const std::string near = train::nearest(argv[1], verbs);
  throw UsageError(Complaint{.where = "deltazero",
                             .found = "the verb '" + std::string(argv[1]) + "'",
                             .expected = "one that --help lists",
                             .hint = near.empty() ? "" : "did you mean: " + near});
}

// An empty path would mean the working directory; only texts may be empty.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string before = argv[i - 1];
    if (argv[i][0] != '\0' || before == "--prompt" || before == "--text") continue;
    throw UsageError(Complaint{.where = i > 1 ? before : "deltazero", .found = "an empty value", .expected = "a value", .hint = ""});
  }
}

// What was printed must have arrived: a full disk behind standard output is an error like any other.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_error("standard output: writing failed");
  return code == 0 ? static_cast<int>(ExitCode::kIo) : code;
}

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
  add_plan(app);
  add_convert(app);
  add_tokenize(app);
  add_tokenizer_train(app);
  add_encode(app);
  add_decode(app);
  add_report(app);
  add_verify(app);
  add_audit(app);
  add_inspect(app);
  add_index(app);
  add_mix(app);
  add_order(app);
  add_generate(app);
  add_doctor(app);
  add_bench(app);
  try {
    refuse_unknown_verb(app, argc, argv);
    refuse_empty_values(argc, argv);
    app.parse(argc, argv);
    return flushed(exit_code);
  } catch (const CLI::Success& success) {
    return flushed(app.exit(success));
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return static_cast<int>(ExitCode::kUsage);
  } catch (const Error& error) {
    print_error(error.what());
    return static_cast<int>(error.code());
  } catch (const BugError& error) {
    print_error(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    print_error((error.path1().string() + ": " + error.code().message()).c_str());
    return static_cast<int>(ExitCode::kIo);
  } catch (const std::bad_alloc&) {
    print_error(
        "out of memory: what was asked for does not fit. To train, model, moments, gradients and the activations of a micro-batch must: take a "
        "smaller model, or topology.micro_batch=1");
    return static_cast<int>(ExitCode::kConfig);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return flushed(0);  // the library that prints threw
    print_error(error.what());
  }
  return static_cast<int>(ExitCode::kBug);
}

}  // namespace dz::cli
