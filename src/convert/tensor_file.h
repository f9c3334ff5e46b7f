// One safetensors file written in pieces and read back: what a tensor file of any size costs is a few pieces of memory.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "convert/source.h"

namespace dz::convert {

// Hands the elements of the tensor of this name to `use`, in order, in pieces.
using ReadTensor = std::function<void(const std::string& name, const UsePiece& use)>;

struct WrittenTensor {
  checkpoint::TensorSpec spec;
  std::vector<std::string> hashes;  // of its pieces of kPiece bytes
};

// By name; a name never comes twice, or plan_safetensors had refused it.
using WrittenTensors = std::map<std::string, WrittenTensor>;

// Writes {"format": "pt"} and the tensors in the library's order, rounded to their dtypes; synced, and out of the page cache so that reading
// it back reads the disk. `passed` hears of each piece. CreateError, IoError, and what `read` throws.
void write_tensor_file(const fs::path& path, const std::vector<checkpoint::TensorSpec>& tensors, const ReadTensor& read,
                       const std::function<void(int64_t)>& passed, WrittenTensors& written);

// Opens what was written as any reader would and compares names, dtypes, shapes and every byte. IoError: the disk does not hold what was
// written to it.
void read_back(const fs::path& path, const WrittenTensors& written, const std::function<void(int64_t)>& passed);

}  // namespace dz::convert
