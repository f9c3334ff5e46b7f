// deltazero inspect PATH: what a run, a checkpoint or a model holds, and whether every byte is still what was written; with --instances, what the
// data of a run is (inspect_instances.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "cli/cli.h"
#include "cli/inspect_instances.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Inspection {
  const char* kind = "model";
  checkpoint::TensorSource tensors;
  std::optional<checkpoint::Checkpoint> checkpoint;
  std::vector<checkpoint::Skipped> skipped;
  int64_t count = 0;  // checkpoints of the run
};

Inspection inspect_run(const fs::path& path) {
  checkpoint::Newest newest = checkpoint::find_newest(path / "checkpoints");
  if (!newest.checkpoint) {
    if (newest.skipped.empty()) throw InputError(path.string() + ": a run without a checkpoint yet");
    std::string message = path.string() + ": no complete checkpoint among " + std::to_string(newest.count);
    for (const checkpoint::Skipped& skipped : newest.skipped) message += "\n  " + skipped.name + ": " + skipped.why;
    throw CheckpointError(message);
  }
  return {"run", checkpoint::TensorSource::open(newest.checkpoint->path), std::move(newest.checkpoint), std::move(newest.skipped), newest.count};
}

Inspection inspect_path(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw InputError(path.string() + ": no such file or directory; expected a run, a checkpoint, a Hugging Face directory or a .safetensors file");
  if (fs::is_directory(path / "checkpoints", ignored)) return inspect_run(path);
  // The trainer's state tells a checkpoint from a Hugging Face model, also where the manifest was lost.
  if (fs::exists(path / "manifest.json", ignored) || fs::exists(path / "trainer.json", ignored)) {
    checkpoint::Checkpoint found = checkpoint::open_checkpoint(path);
    checkpoint::verify_files(found);
    return {"checkpoint", checkpoint::TensorSource::open(path), std::move(found), {}, 0};
  }
  return {"model", checkpoint::TensorSource::open(path), std::nullopt, {}, 0};
}

int64_t parameter_count(const checkpoint::TensorSource& source) {
  int64_t count = 0;
  for (const checkpoint::StoredTensor& tensor : source.tensors()) count += tensor.elements();
  return count;
}

Json to_json(const Inspection& found, const fs::path& path) {
  Json json{{"kind", found.kind}, {"path", found.checkpoint ? found.checkpoint->path.string() : path.string()}};
  if (found.checkpoint) {
    const checkpoint::Checkpoint& c = *found.checkpoint;
    json["step"] = c.step;
    json["digest"] = {{"parameters", c.parameters.hex()}, {"moments", c.moments.hex()}, {"trainer", c.trainer.hex()}};
    json["files"] = Json::array();
    for (const checkpoint::ManifestFile& file : c.files)
      json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
    json["skipped"] = Json::array();
    for (const checkpoint::Skipped& skipped : found.skipped) json["skipped"].push_back({{"name", skipped.name}, {"why", skipped.why}});
  }
  json["parameters"] = parameter_count(found.tensors);
  json["tensors"] = Json::array();
  for (const checkpoint::StoredTensor& tensor : found.tensors.tensors())
    json["tensors"].push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
  return json;
}

std::string to_text(const Inspection& found, const fs::path& path, bool list) {
  std::string text;
  if (found.checkpoint) {
    const checkpoint::Checkpoint& c = *found.checkpoint;
    for (const checkpoint::Skipped& skipped : found.skipped) text += fmt::format("skipped     {}: {}\n", skipped.name, skipped.why);
    text += fmt::format("checkpoint  {}   step {}{}   every byte as written\n", c.path.string(), c.step,
                        found.count > 0 ? fmt::format("   newest complete of {}", found.count) : "");
    text += fmt::format("digest      parameters {}\n            moments    {}\n            trainer    {}\n", c.parameters.hex(), c.moments.hex(),
                        c.trainer.hex());
    for (const checkpoint::ManifestFile& file : c.files)
      text += fmt::format("file        {:<24} {:>14} bytes   sha256 {}\n", file.name, file.bytes, file.sha256);
  } else {
    text += fmt::format("model       {}\n", path.string());
  }
  text += fmt::format("tensors     {}   {} parameters\n", found.tensors.tensors().size(), parameter_count(found.tensors));
  if (!list && found.checkpoint) return text;
  for (const checkpoint::StoredTensor& tensor : found.tensors.tensors())
    text += fmt::format("  {:<6} [{}]  {}\n", tensor.dtype, fmt::join(tensor.shape, ", "), tensor.name);
  return text;
}

}  // namespace

void add_inspect(CLI::App& app) {
  struct Options {
    std::string path;
    bool json = false, tensors = false;
    InstancesOptions instances;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("inspect", "show and check a run's newest checkpoint, one checkpoint, the tensors of a model, or the data of a run");
  verb->add_option("PATH", options->path,
                   "run, checkpoint, Hugging Face directory or .safetensors file; with --instances: run, checkpoint, config file or token shards")
      ->required();
  CLI::Option* range =
      verb->add_option("--instances", options->instances.range, "show instances of the data instead: of a run, a config file or token shards");
  range->type_name("A:B");
  verb->add_option("--seq", options->instances.sequence_length, "tokens an instance, where PATH is a directory of token shards")->needs(range);
  verb->add_option("--set", options->instances.sets, "change a key of the recipe, as for data that was moved")
      ->type_name("recipe.data.KEY=VALUE")
      ->take_all()
      ->expected(1)
      ->needs(range);
  verb->add_flag("--json", options->json, "one JSON object on standard output");
  verb->add_flag("--tensors", options->tensors, "also list the tensors of a checkpoint");
  verb->footer(
      "Reads every byte of a checkpoint and compares it with the manifest. exit 65: damaged, the message names file and chunk; 66: nothing there");
  verb->callback([options] {
    if (!options->instances.range.empty()) {
      options->instances.data = options->path;
      options->instances.json = options->json;
      return inspect_instances(options->instances);
    }
    const Inspection found = inspect_path(options->path);
    const std::string text = options->json ? to_json(found, options->path).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                           : to_text(found, options->path, options->tensors);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace dz::cli
