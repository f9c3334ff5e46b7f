// safetensors files: a reader that believes nothing before it has checked it, and a writer whose bytes equal the library's.
// Layout: u64 little-endian N | N bytes of JSON, padded with spaces | tensor bytes without holes, to the end of the file
// (huggingface/safetensors README and tensor.rs). Tensors may lie unaligned in a file, so reads go through pread, never a cast; and no file
// is mapped, so that a file which shrinks while it is open is an error with a message and not a signal (docs/conversion.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/file.h"
#include "base/tensor.h"

namespace dz::checkpoint {

// The format's name of a dtype ("BF16"), and ours for the ones that this program computes with or stores.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_of(std::string_view name);

using Metadata = std::map<std::string, std::string>;

// Where a tensor lies. `dtype` is the format's name: files may hold types that this program only lists.
struct StoredTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  int64_t offset = 0;  // of the first byte, from the start of the file
  int64_t bytes = 0;
  int file = 0;  // which file of a TensorSource
  int64_t elements() const { return element_count(shape); }
};

// The checked header of one file. Stricter than the library: a leading space before `{` and repeated names are refused.
struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in file order
  Metadata metadata;
  int64_t data_offset = 0;  // 8 + N
};

// Reads and checks the header against the size of the file; allocates in proportion to bytes that are really there.
// CheckpointError names the path, and where possible the tensor, what was found and what was expected.
SafetensorsHeader read_safetensors_header(const File& file);

// The tensors of one .safetensors file, or of a Hugging Face directory (model.safetensors, or the shards that
// model.safetensors.index.json names: every name in exactly one file, none left over). Open files, no data in memory.
class TensorSource {
 public:
  // InputError: nothing there. CheckpointError: any file is malformed, or index and files disagree.
  static TensorSource open(const fs::path& path);

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in byte order of names
  const StoredTensor* find(std::string_view name) const;                 // null when absent
  const StoredTensor& at(std::string_view name) const;                   // CheckpointError naming path and tensor
  const fs::path& path() const { return path_; }                         // as opened
  const fs::path& path_of(const StoredTensor& tensor) const;
  const Metadata& metadata() const { return metadata_; }  // of the first file

  // The bytes as they lie in the file; out.size() must be tensor.bytes. CheckpointError when the file has shrunk since it was opened.
  void read(const StoredTensor& tensor, std::span<std::byte> out) const;
  void read_part(const StoredTensor& tensor, int64_t first_byte, std::span<std::byte> out) const;  // a part of them
  // F32, BF16 and F16 widened exactly to float (any number of elements: out.size() must be tensor.elements()); other dtypes: CheckpointError.
  void read_f32(const StoredTensor& tensor, std::span<float> out) const;
  void read_f32_part(const StoredTensor& tensor, int64_t first_element, std::span<float> out) const;

 private:
  fs::path path_;
  std::vector<File> files_;
  std::vector<StoredTensor> tensors_;
  Metadata metadata_;
};

// A tensor that is to be written, its data still to come.
struct TensorSpec {
  std::string name;
  std::string dtype;  // the format's name
  Shape shape;
  int64_t bytes() const;  // of its data
};

// The beginning of a file and the order in which the data of its tensors must follow: what streaming writers go by.
struct SafetensorsPlan {
  std::string head;                   // the length and the JSON, padded to 8 bytes
  std::vector<StoredTensor> tensors;  // in file order: by dtype rank descending, then by name bytewise, as the library has it
  int64_t file_bytes = 0;
};

// ConfigError when two tensors share a name or the header would exceed the format's 100,000,000 bytes.
SafetensorsPlan plan_safetensors(std::vector<TensorSpec> tensors, const Metadata& metadata);

// A tensor to write, of any dtype of the format.
struct RawTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::span<const std::byte> data;
};

RawTensor raw(const TensorView& tensor);

// Receives the file piece by piece, in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// What Hugging Face loaders demand; always written.
inline const Metadata kTorchFormat = {{"format", "pt"}};

// Writes the file that the library would write: tensors by dtype rank descending, then by name bytewise; header padded to 8 bytes.
// Equality holds for at most one metadata key (the library emits several in hash order; we sort them). ConfigError as plan_safetensors.
void write_safetensors(std::vector<RawTensor> tensors, const Metadata& metadata, const ByteSink& sink);
void write_safetensors(std::span<const TensorView> tensors, const Metadata& metadata, const ByteSink& sink);

}  // namespace dz::checkpoint
