// Small models in temporary directories, and what tests of conversions compare.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/scratch.h"
#include "convert/convert.h"

namespace dz::convert {

inline fs::path golden_model(const std::string& name) { return fs::path(DZ_GOLDEN) / "model" / name; }

inline std::string text_of(const fs::path& path) { return read_file(path); }

// A Hugging Face directory of its own with config.json, weights and side files of a golden model.
inline fs::path copy_model(const Scratch& scratch, const std::string& name) {
  const fs::path directory = scratch / name;
  fs::create_directories(directory);
  for (const char* file : {"config.json", "model.safetensors"}) {
    fs::copy(golden_model(name) / file, directory / file);
    fs::permissions(directory / file, fs::perms::owner_write, fs::perm_options::add);
  }
  return directory;
}

struct Tensor {
  std::string dtype;
  Shape shape;
  std::string bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

inline std::map<std::string, Tensor> tensors_of(const fs::path& path) {
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(path);
  std::map<std::string, Tensor> tensors;
  for (const checkpoint::StoredTensor& stored : source.tensors()) {
    Tensor tensor{stored.dtype, stored.shape, std::string(static_cast<size_t>(stored.bytes), '\0')};
    source.read(stored, std::as_writable_bytes(std::span(tensor.bytes)));
    tensors[stored.name] = std::move(tensor);
  }
  return tensors;
}

inline void write_tensors(const fs::path& path, const std::map<std::string, Tensor>& tensors) {
  std::vector<checkpoint::RawTensor> raw;
  for (const auto& [name, tensor] : tensors) raw.push_back({name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.bytes))});
  std::string text;
  checkpoint::write_safetensors(std::move(raw), checkpoint::kTorchFormat,
                                [&](std::span<const std::byte> bytes) { text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  write_bytes(path, text);
}

inline nlohmann::json json_of(const fs::path& path) { return nlohmann::json::parse(read_file(path)); }

inline Report run(const fs::path& in, const fs::path& out) { return convert({.in = in, .out = out}, {}); }

}  // namespace dz::convert
