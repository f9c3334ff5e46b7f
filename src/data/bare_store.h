// Token files of others as a token store: headerless files without our manifest, in the order given, each an entry, with label masks beside
// them where there are some. Read by pread; nothing is mapped, and only so many files are open at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_hashes.h"
#include "data/open_files.h"
#include "data/token_file.h"
#include "data/token_store.h"

namespace dz::data {

struct BareSettings {
  std::vector<std::string> paths;   // at least one; a path that comes twice counts twice
  std::vector<std::string> labels;  // one for each path, or none: the file's name
  std::vector<std::string> masks;   // one for each path, or none: headerless, a byte of 0 or 1 for each token
  TokenType type = TokenType::kUint32;
  Vocabulary vocabulary;
  bool strict = false;       // refuse a file whose size is no multiple of the width, instead of a note
  bool check_width = true;   // refuse a file that looks like the other width
  fs::path cache_directory;  // keeps the files' hashes; empty: they are computed when first needed
};

class BareStore : public TokenStore {
 public:
  // Looks at the size and the first bytes of each file, however large. InputError: missing; ConfigError: settings that do not fit each other;
  // DataError: wrong width, a .npy header of something else, a mask of another length.
  explicit BareStore(BareSettings settings);

  void read(int64_t entry, int64_t first, std::span<int32_t> out) const override;
  void read_label_mask(int64_t entry, int64_t first, std::span<uint8_t> out) const override;
  // Re-reads everything, also what the cache knows, and compares with it: DataError naming file and chunk.
  void verify(ThreadPool& pool) const override;
  // Reads only the files whose hashes are not known yet. digest() and manifest_json() do the same on the calling thread.
  void hash(ThreadPool& pool) const;
  std::string digest() const override;
  // {"format", "dtype", "vocab_size", "eos_id", "bos_id", "digest", "files": [{"path", "label", "bytes", "tokens", "sha256", "mask_sha256"}]}
  std::string manifest_json() const override;

  // SHA-256 of an entry's file, when it is known without reading.
  std::optional<std::string> known_sha256(int64_t entry) const;
  // What a person should know: bytes that are left over, empty files, a damaged cache. One line each, naming the file.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void add_file(size_t index);
  void add_mask(size_t index);
  void scan_all(ThreadPool* pool, bool again) const;
  HashedFile scan(size_t file) const;
  void compare(size_t file, const FileHashes& known, const FileHashes& now) const;

  BareSettings settings_;
  std::vector<TokenLayout> layouts_;
  std::vector<std::string> notes_;
  OpenFiles files_;  // the token files, then the masks
  mutable std::mutex mutex_;
  mutable std::vector<std::optional<FileHashes>> hashes_;  // as files_
  mutable std::optional<HashCache> cache_;
};

// One line for each thing in which the data of `now` differs from the data that `run` was made with (both: manifest_json() of a store of
// files): changed, shortened, swapped, moved, missing or new files by name. The same bytes under another path are no difference.
// DataError when a text is no such manifest.
std::vector<std::string> file_differences(std::string_view run, std::string_view now);

}  // namespace dz::data
