#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/hashed_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shards.h"
#include "convert/output.h"
#include "convert/tensor_file.h"
#include "model/hf_config.h"

namespace dz::convert {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIndexName = "model.safetensors.index.json";

std::string dtype_of(const SourceTensor& tensor, const Options& options) { return options.dtype.empty() ? tensor.kept_dtype : options.dtype; }

std::string name_of(const SourceTensor& tensor, const Options& options) {
  return options.names == Names::kOlmoCore ? olmo_core_name(tensor.spec.name).value() : tensor.spec.name;
}

// config.json names the type of the weights under one of two keys, or not at all; it is changed only where the type is.
std::string config_of(const Source& source, const Options& options) {
  if (options.dtype.empty()) return source.config_text;
  const std::string type = options.dtype == "F32" ? "float32" : "bfloat16";
  Json json = Json::parse(source.config_text);
  bool found = false;
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (!json.contains(key)) continue;
    found = true;
    json[key] = type;
  }
  if (!found) json["dtype"] = type;
  return json == Json::parse(source.config_text) ? source.config_text : json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_small_files(const Source& source, const Options& options, const fs::path& directory) {
  checkpoint::write_text(directory, "config.json", config_of(source, options));
  for (const SideFile& file : source.side_files) checkpoint::write_text(directory, file.name, file.read());
}

// The moments of a checkpoint as two files of tensors by the names of the parameters, f32: what recipe.init_moments takes.
void write_moments(const Source& source, const Options& options, const fs::path& directory, Meter& meter) {
  const checkpoint::TensorSource moments = checkpoint::TensorSource::open(source.path / checkpoint::kMomentsName);
  const checkpoint::TensorsDigest digests = checkpoint::read_digests(*source.checkpoint).moments;
  const auto passed = [&](int64_t bytes) { meter.add(bytes); };
  for (const std::string kind : {"exp_avg", "exp_avg_sq"}) {
    std::vector<checkpoint::TensorSpec> specs;
    std::map<std::string, std::string> stored_names;
    for (const SourceTensor& tensor : source.parameters) {
      specs.push_back({name_of(tensor, options), "F32", tensor.spec.shape});
      stored_names[specs.back().name] = kind + "." + tensor.spec.name;
    }
    const auto read = [&](const std::string& name, const UsePiece& use) {
      const std::string& stored = stored_names.at(name);
      read_elements(moments, moments.at(stored), &find_digest(digests.tensors, stored, source.path), use);
    };
    const fs::path path = directory / (kind + ".safetensors");
    WrittenTensors written;
    write_tensor_file(path, specs, read, passed, written);
    read_back(path, written, passed);
  }
}

void add_warnings(const Source& source, Report& report) {
  for (const std::string& text : model::misreadings(source.config)) report.warnings.push_back("config.json: " + text);
}

}  // namespace

int64_t hugging_face_bytes(const Source& source, const Options& options) {
  int64_t bytes = 0;
  for (const SourceTensor& tensor : source.parameters) {
    const int64_t elements = element_count(tensor.spec.shape);
    bytes += elements * (dtype_of(tensor, options) == "F32" ? 4 : 2);
    if (options.moments) bytes += elements * 8;
  }
  return bytes;
}

void write_hugging_face(const Source& source, const Options& options, const fs::path& directory, Meter& meter, Report& report) {
  std::vector<checkpoint::TensorSpec> specs;
  std::map<std::string, const SourceTensor*> by_name;
  for (const SourceTensor& tensor : source.parameters) {
    specs.push_back({name_of(tensor, options), dtype_of(tensor, options), tensor.spec.shape});
    by_name[specs.back().name] = &tensor;
  }
  const std::vector<checkpoint::Shard> shards = checkpoint::plan_shards(std::move(specs), options.max_shard_bytes);
  WrittenTensors written;
  const auto passed = [&](int64_t bytes) { meter.add(bytes); };
  for (const checkpoint::Shard& shard : shards)
    write_tensor_file(
        directory / shard.file, shard.tensors, [&](const std::string& name, const auto& use) { source.read(*by_name.at(name), use); }, passed,
        written);
  if (shards.size() > 1) checkpoint::write_text(directory, kIndexName, checkpoint::index_json(shards));
  write_small_files(source, options, directory);
  read_back(directory, written, passed);
  if (options.moments) write_moments(source, options, directory, meter);
  report.files = static_cast<int64_t>(shards.size());
  for (const auto& [name, tensor] : written) report.out_types.push_back(tensor.spec.dtype);
  add_warnings(source, report);
  if (source.checkpoint && !options.moments) report.notes.push_back("the optimizer's moments stay behind; --moments writes them too");
}

}  // namespace dz::convert
