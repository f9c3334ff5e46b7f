// A group's packing as OLMo-core keeps it in three raw files of little-endian u64 (OLMo-core: data/numpy_dataset.py NumpyPackedFSLDataset):
//   document-indices       start, end of each document in the group's files joined, the longest first
//   documents-by-instance  documents (places in the list above), instance after instance
//   instance-offsets       start, end of each instance in documents-by-instance
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/documents.h"
#include "data/token_store.h"

namespace dz::data {

inline constexpr std::array<std::string_view, 3> kPackingFiles = {"document-indices", "documents-by-instance", "instance-offsets"};

class GroupPacking {
 public:
  // By kPackingFiles.
  explicit GroupPacking(std::array<std::vector<uint64_t>, 3> arrays) : arrays_(std::move(arrays)) {}

  // Reads PREFIX-SUFFIX.npy ... of `directory`; DataError naming the file: missing, or a size that is no list of numbers.
  static GroupPacking open(const fs::path& directory, const std::string& suffix);
  static bool exists(const fs::path& directory, const std::string& suffix);
  // Each file under another name first, then renamed. CreateError, IoError.
  void write(const fs::path& directory, const std::string& suffix) const;

  // DataError saying what does not fit: a packing lists every document once, and its documents lie in `files` (tokens of each, in order), none
  // longer than, and no instance fuller than, sequence_length.
  void check(std::span<const int64_t> files, int64_t sequence_length, const std::string& where) const;

  int64_t documents() const { return static_cast<int64_t>(indices().size() / 2); }
  int64_t instances() const { return static_cast<int64_t>(offsets().size() / 2); }
  std::span<const uint64_t> instance(int64_t i) const;  // documents
  DocumentRange document(uint64_t i) const;
  int64_t tokens() const;  // of all documents

  std::span<const uint64_t> indices() const { return arrays_[0]; }
  std::span<const uint64_t> by_instance() const { return arrays_[1]; }
  std::span<const uint64_t> offsets() const { return arrays_[2]; }

 private:
  GroupPacking() = default;

  std::array<std::vector<uint64_t>, 3> arrays_;
};

// "LENGTH-SHA256", what follows the names of OLMo-core's cache files of some source files: the hash is over path and bytes of each and
// then the extra words (OLMo-core: NumpyFSLDatasetBase._get_indices_path). Packed data: the long document strategy and "uint64"; padded: none;
// interleaved: documents an instance.
std::string olmo_core_cache_suffix(int64_t sequence_length, std::span<const TokenEntry> files, std::span<const std::string> extra);

}  // namespace dz::data
