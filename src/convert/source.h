// A model that is to be converted, wherever it lies: tensors by Hugging Face name, read in pieces; config.json; side files.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "convert/names.h"
#include "convert/origin.h"
#include "model/config.h"

namespace dz::convert {

enum class Form : uint8_t { kHuggingFace, kNative };

struct SourceTensor {
  model::ParameterSpec spec;
  const checkpoint::StoredTensor* stored = nullptr;
  std::string kept_dtype;  // of the original weights: what "dtype kept" means
};

struct SideFile {
  std::string name;
  std::function<std::string()> read;
};

// Elements of a tensor that are in memory at a time: 16 MiB as float32.
inline constexpr int64_t kPiece = int64_t{4} << 20;

using UsePiece = std::function<void(std::span<const float>)>;

// The elements of a tensor in order, widened exactly, at most kPiece at a time. With `expected`, the digest of a tensor of that name is compared
// after the last piece: CheckpointError.
void read_elements(const checkpoint::TensorSource& tensors, const checkpoint::StoredTensor& stored, const checkpoint::NamedDigest* expected,
                   const UsePiece& use);

// The digest of the tensor `name`; CheckpointError when there is none.
const checkpoint::NamedDigest& find_digest(const std::vector<checkpoint::NamedDigest>& digests, const std::string& name, const fs::path& where);

struct Source {
  Form form = Form::kHuggingFace;
  fs::path path;  // the directory or the file of the weights
  std::optional<checkpoint::Checkpoint> checkpoint;
  std::vector<checkpoint::NamedDigest> parameter_digests;  // of the checkpoint
  checkpoint::TensorSource tensors;
  model::ModelConfig config;
  std::string config_text;               // config.json for the other side: every key kept, rope as every reader takes it
  std::vector<SourceTensor> parameters;  // in the order of the state dict
  std::vector<SideFile> side_files;      // by name
  std::vector<std::string> notes;        // what the user should know

  // `in`: a Hugging Face directory, a .safetensors file (then `like` has its config.json), a native checkpoint, or a run, of which the newest
  // checkpoint is taken. `like`: empty, or a Hugging Face directory whose config.json, side files and dtypes are taken instead of in's own.
  //   InputError       nothing there
  //   DataError        a tensor is missing, left over, of another shape or not of a float type
  //   CheckpointError  damaged files
  //   ConfigError      a model that this program does not know, or `like` is another model than `in`
  static Source open(const fs::path& in, const fs::path& like);

  // read_elements; what a native checkpoint holds is compared with its digests.
  void read(const SourceTensor& tensor, const UsePiece& use) const;
};

}  // namespace dz::convert
