#include "data/packing_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

fs::path path_of(const fs::path& directory, size_t file, const std::string& suffix) {
  return directory / fmt::format("{}-{}.npy", kPackingFiles[file], suffix);
}

[[noreturn]] void fail(const std::string& where, const std::string& found, const std::string& expected) {
  throw DataError(Complaint{
      .where = where, .found = found, .expected = expected, .hint = "the cache belongs to other token files or is damaged; remove it to pack anew"});
}

}  // namespace

// Read into memory rather than mapped: a file that is cut off under a running process must not end it.
GroupPacking GroupPacking::open(const fs::path& directory, const std::string& suffix) {
  GroupPacking packing;
  for (size_t i = 0; i < kPackingFiles.size(); ++i) {
    const fs::path path = path_of(directory, i, suffix);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      throw DataError(Complaint{.where = path.string(),
                                .found = "no such file",
                                .expected = "three files of a packing",
                                .hint = "OLMo-core names them by the sizes of the token files and by their paths as it was given them"});
    }
    const File file = File::open_read(path);
    const auto size = static_cast<size_t>(file.size());
    const size_t unit = sizeof(uint64_t) * (kPackingFiles[i] == "documents-by-instance" ? 1 : 2);
    if (size % unit != 0) fail(path.string(), fmt::format("{} bytes", size), fmt::format("a multiple of {}", unit));
    packing.arrays_[i].resize(size / sizeof(uint64_t));
    file.read_at(0, std::as_writable_bytes(std::span(packing.arrays_[i])));
  }
  return packing;
}

bool GroupPacking::exists(const fs::path& directory, const std::string& suffix) {
  std::error_code ignored;
  for (size_t i = 0; i < kPackingFiles.size(); ++i) {
    if (!fs::is_regular_file(path_of(directory, i, suffix), ignored)) return false;
  }
  return true;
}

void GroupPacking::write(const fs::path& directory, const std::string& suffix) const {
  dz::create_directories(directory);
  for (size_t i = 0; i < kPackingFiles.size(); ++i) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(arrays_[i]));
    write_file_atomic(path_of(directory, i, suffix), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

void GroupPacking::check(std::span<const int64_t> files, int64_t sequence_length, const std::string& where) const {
  const auto tokens = static_cast<uint64_t>(std::accumulate(files.begin(), files.end(), int64_t{0}));
  std::vector<uint64_t> ends;  // of each file, in the files joined
  for (const int64_t file : files) ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<uint64_t>(file));
  const auto longest = static_cast<uint64_t>(sequence_length);
  for (size_t i = 0; i < indices().size(); i += 2) {
    const uint64_t start = indices()[i], end = indices()[i + 1];
    if (start >= end || end > tokens || end - start > longest)
      fail(where, fmt::format("document {} at {} to {}", i / 2, start, end), fmt::format("1 to {} tokens of {}", longest, tokens));
    const uint64_t file_end = *std::upper_bound(ends.begin(), ends.end(), start);
    if (end > file_end)
      fail(where, fmt::format("document {} at {} to {}", i / 2, start, end), fmt::format("no document across the file end {}", file_end));
  }
  if (by_instance().size() * 2 != indices().size())
    fail(where, fmt::format("{} documents in instances", by_instance().size()), fmt::format("each of {} once", indices().size() / 2));
  std::vector<bool> seen(by_instance().size());
  for (const uint64_t document : by_instance()) {
    if (document >= seen.size() || seen[document]) fail(where, fmt::format("document {} twice or out of range", document), "each document once");
    seen[document] = true;
  }
  uint64_t next = 0;
  for (size_t i = 0; i < offsets().size(); i += 2) {
    const uint64_t start = offsets()[i], end = offsets()[i + 1];
    if (start != next || end <= start || end > by_instance().size())
      fail(where, fmt::format("instance {} at {} to {}", i / 2, start, end), fmt::format("a list that begins at {}", next));
    next = end;
    uint64_t used = 0;
    for (uint64_t k = start; k < end; ++k) used += indices()[2 * by_instance()[k] + 1] - indices()[2 * by_instance()[k]];
    if (used > longest) fail(where, fmt::format("{} tokens in instance {}", used, i / 2), fmt::format("at most {}", longest));
  }
  if (next != by_instance().size()) fail(where, fmt::format("instances of {} documents", next), fmt::format("{}", by_instance().size()));
}

std::span<const uint64_t> GroupPacking::instance(int64_t i) const {
  DZ_CHECK(i >= 0 && i < instances(), "instance", i, "instances", instances());
  const uint64_t start = offsets()[static_cast<size_t>(2 * i)], end = offsets()[static_cast<size_t>(2 * i) + 1];
  return by_instance().subspan(start, end - start);
}

DocumentRange GroupPacking::document(uint64_t i) const {
  return {.start = static_cast<int64_t>(indices()[2 * i]), .end = static_cast<int64_t>(indices()[2 * i + 1])};
}

int64_t GroupPacking::tokens() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < indices().size(); i += 2) sum += indices()[i + 1] - indices()[i];
  return static_cast<int64_t>(sum);
}

std::string olmo_core_cache_suffix(int64_t sequence_length, std::span<const TokenEntry> files, std::span<const std::string> extra) {
  Sha256 hash;
  for (const TokenEntry& file : files) hash.update(file.name + std::to_string(file.bytes));
  for (const std::string& word : extra) hash.update(word);
  return fmt::format("{}-{}", sequence_length, hash.hex());
}

}  // namespace dz::data
