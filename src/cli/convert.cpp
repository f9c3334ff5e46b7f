// deltazero convert IN OUT: a Hugging Face model as a native checkpoint, and back.
#include "convert/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/byte_size.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"

namespace dz::cli {
namespace {

struct Arguments {
  std::string in, out, to, dtype, like, names = "hf", max_shard_size = "5GB";
  bool moments = false, json = false;
};

const char* form_name(convert::Form form) { return form == convert::Form::kNative ? "native" : "hf"; }

void print_json(const convert::Report& report) {
  const nlohmann::ordered_json json{{"in", report.in.string()},        {"out", report.out.string()},  {"from", form_name(report.from)},
                                    {"to", form_name(report.to)},      {"step", report.step},         {"tensors", report.tensors},
                                    {"parameters", report.parameters}, {"in_types", report.in_types}, {"out_types", report.out_types},
                                    {"files", report.files},           {"bytes", report.out_bytes},   {"notes", report.notes},
                                    {"warnings", report.warnings}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_text(const convert::Report& report) {
  const bool native = report.to == convert::Form::kNative;
  fmt::print("from    {}: {}, {} tensors, {} parameters, {}\n", report.in.string(),
             report.from == convert::Form::kNative ? fmt::format("native checkpoint of step {}", report.step) : "Hugging Face", report.tensors,
             report.parameters, fmt::join(report.in_types, " and "));
  fmt::print("to      {}: {}, {}, {} bytes of tensors in {} file{}\n", report.out.string(),
             native ? fmt::format("native checkpoint of step {}", report.step) : "Hugging Face", fmt::join(report.out_types, " and "),
             report.out_bytes, native ? report.files + 1 : report.files, native || report.files > 1 ? "s" : "");
  for (const std::string& note : report.notes) fmt::print("        {}\n", note);
  fmt::print("checked every tensor was read back: names, shapes, hashes\n");
  std::fflush(stdout);
  for (const std::string& warning : report.warnings) fmt::print(stderr, "warning: {}\n", warning);
}

void run_convert(const Arguments& arguments) {
  convert::Options options{.in = arguments.in, .out = arguments.out, .like = arguments.like};
  if (!arguments.to.empty()) options.to = arguments.to == "hf" ? convert::Form::kHuggingFace : convert::Form::kNative;
  if (!arguments.dtype.empty()) options.dtype = arguments.dtype == "fp32" ? "F32" : "BF16";
  options.names = arguments.names == "hf" ? convert::Names::kHuggingFace : convert::Names::kOlmoCore;
  options.max_shard_bytes = parse_byte_size(arguments.max_shard_size, "--max-shard-size");
  options.moments = arguments.moments;
  ProgressBar bar("convert");
  const convert::Report report = convert::convert(options, [&](int64_t done, int64_t total) { bar.show("convert", done, total, done); });
  bar.clear();
  arguments.json ? print_json(report) : print_text(report);
}

}  // namespace

void add_convert(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("convert", "turn a Hugging Face model into a native checkpoint, and back");
  verb->add_option("IN", arguments->in, "Hugging Face directory, .safetensors file, native checkpoint, or run")->required();
  verb->add_option("OUT", arguments->out, "a directory that does not exist yet, or is empty")->required();
  verb->add_option("--to", arguments->to, "hf or native; the other form than IN's unless given")
      ->check(CLI::IsMember({"hf", "native"}))
      ->type_name("FORM");
  verb->add_option("--dtype", arguments->dtype, "fp32 or bf16; each tensor keeps the type it had unless given")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("DTYPE");
  verb->add_option("--like", arguments->like, "take config.json, side files and types from this Hugging Face directory")->type_name("DIR");
  verb->add_option("--names", arguments->names, "hf or olmo-core: of the tensors written")
      ->capture_default_str()
      ->check(CLI::IsMember({"hf", "olmo-core"}))
      ->type_name("NAMES");
  verb->add_option("--max-shard-size", arguments->max_shard_size, "a file of weights grows no larger")->capture_default_str()->type_name("SIZE");
  verb->add_flag("--moments", arguments->moments, "native to hf: also exp_avg.safetensors and exp_avg_sq.safetensors");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->footer(
      "Works in pieces: memory stays below 200 MB for a model of any size. What is written is read back and compared.\n"
      "exit 65: IN is damaged or another model; 66: nothing there; 73: OUT is there already; 74: disk full.");
  verb->callback([arguments] { run_convert(*arguments); });
}

}  // namespace dz::cli
