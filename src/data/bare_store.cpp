#include "data/bare_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "data/token_bytes.h"

namespace dz::data {
namespace {

constexpr const char* kFormat = "deltazero-files-1";
constexpr int64_t kSampleBytes = 8192;

void check_settings(const BareSettings& settings) {
  const auto refuse = [](const char* where, const std::string& found, const std::string& expected) {
    throw ConfigError(Complaint{.where = where, .found = found, .expected = expected, .hint = ""});
  };
  const auto paired = [&](const char* what, const std::vector<std::string>& list) {
    if (!list.empty() && list.size() != settings.paths.size())
      refuse(what, std::to_string(list.size()), fmt::format("one for each of the {} token files, or none", settings.paths.size()));
  };
  const Vocabulary& vocabulary = settings.vocabulary;
  if (settings.paths.empty()) refuse("token files", "none", "at least one");
  paired("labels", settings.labels);
  paired("label mask files", settings.masks);
  if (vocabulary.size < 1 || vocabulary.size > int64_t{1} << 31) refuse("vocab_size", std::to_string(vocabulary.size), "1 to 2147483648");
  if (settings.type == TokenType::kUint16 && vocabulary.size > 65536)
    refuse("dtype", "uint16", fmt::format("uint32 for a vocabulary of {}", vocabulary.size));
  const std::pair<const char*, int64_t> ids[] = {{"eos_id", vocabulary.eos_id}, {"pad_id", vocabulary.pad_id}, {"bos_id", vocabulary.bos_id}};
  for (const auto& [name, id] : ids) {
    if (id < -1 || id >= vocabulary.size) refuse(name, std::to_string(id), fmt::format("an id below the vocabulary size {}", vocabulary.size));
  }
}

}  // namespace

BareStore::BareStore(BareSettings settings) : settings_(std::move(settings)) {
  check_settings(settings_);
  vocabulary_ = settings_.vocabulary;
  type_ = settings_.type;
  has_label_masks_ = !settings_.masks.empty();
  cache_.emplace(settings_.cache_directory, notes_);
  for (size_t i = 0; i < settings_.paths.size(); ++i) add_file(i);
  for (size_t i = 0; i < settings_.masks.size(); ++i) add_mask(i);
}

void BareStore::add_file(size_t index) {
  const std::string& path = settings_.paths[index];
  const File file = File::open_read(path);
  const TokenLayout layout = token_layout(file, type_);
  if (layout.left_over > 0 && settings_.strict) {
    throw DataError(Complaint{.where = path,
                              .found = fmt::format("{} bytes", layout.bytes),
                              .expected = fmt::format("a multiple of {}, the width of {}", size_of(type_), name_of(type_)),
                              .hint = "the file is truncated, or its tokens have another width"});
  }
  if (layout.left_over > 0) {
    notes_.push_back(
        fmt::format("{}: the last {} of {} bytes make no whole {} token and are not used", path, layout.left_over, layout.bytes, name_of(type_)));
  }
  if (layout.tokens == 0) notes_.push_back(fmt::format("{}: no tokens", path));
  const int64_t sample = std::min(layout.tokens * size_of(type_), kSampleBytes);
  std::vector<std::byte> bytes(static_cast<size_t>(sample));
  file.read_at(layout.data_offset, bytes);
  const std::optional<std::string> other = settings_.check_width ? other_width(bytes, type_, vocabulary_.size) : std::nullopt;
  if (other) {
    throw DataError(Complaint{.where = path,
                              .found = "what looks like " + *other,
                              .expected = fmt::format("{} tokens", name_of(type_)),
                              .hint = "give the dtype that the file was written with"});
  }
  layouts_.push_back(layout);
  entries_.push_back({.name = path,
                      .label = settings_.labels.empty() ? fs::path(path).filename().string() : settings_.labels[index],
                      .tokens = layout.tokens,
                      .bytes = layout.bytes});
  files_.add(path, layout.bytes);
  hashes_.push_back(cache_->find(path, stamp_of(file)));
}

void BareStore::add_mask(size_t index) {
  const std::string& path = settings_.masks[index];
  const File file = File::open_read(path);
  if (file.size() != layouts_[index].tokens) {
    throw DataError(Complaint{.where = path,
                              .found = fmt::format("{} bytes", file.size()),
                              .expected = fmt::format("{}, one for each token of {}", layouts_[index].tokens, settings_.paths[index]),
                              .hint = ""});
  }
  files_.add(path, file.size());
  hashes_.push_back(cache_->find(path, stamp_of(file)));
}

void BareStore::read(int64_t entry, int64_t first, std::span<int32_t> out) const {
  DZ_CHECK(entry >= 0 && entry < size(), "entry", entry, "entries", size());
  const auto index = static_cast<size_t>(entry);
  const auto count = static_cast<int64_t>(out.size());
  const TokenLayout& layout = layouts_[index];
  DZ_CHECK(first >= 0 && count <= layout.tokens && first <= layout.tokens - count, "first", first, "count", count, "tokens", layout.tokens);
  const int64_t offset = layout.data_offset + first * size_of(type_);
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(size_of(type_)));
  files_.read(index, offset, bytes);
  check_token_range(bytes, type_, vocabulary_.size, files_.path(index), offset);
  widen_tokens(bytes, type_, out);
}

void BareStore::read_label_mask(int64_t entry, int64_t first, std::span<uint8_t> out) const {
  if (!has_label_masks_) return TokenStore::read_label_mask(entry, first, out);
  DZ_CHECK(entry >= 0 && entry < size(), "entry", entry, "entries", size());
  const auto count = static_cast<int64_t>(out.size());
  const int64_t tokens = this->entry(entry).tokens;
  DZ_CHECK(first >= 0 && count <= tokens && first <= tokens - count, "first", first, "count", count, "tokens", tokens);
  const auto index = static_cast<size_t>(size() + entry);
  files_.read(index, first, std::as_writable_bytes(out));
  check_mask_bytes(std::as_bytes(out), files_.path(index), first);
}

// The hashes of a file, its ids or mask bytes checked on the way.
HashedFile BareStore::scan(size_t index) const {
  const File file = File::open_read(files_.path(index));
  const bool mask = index >= layouts_.size();
  const int64_t offset = mask ? 0 : layouts_[index].data_offset;
  const int64_t end = mask ? files_.bytes(index) : offset + layouts_[index].tokens * size_of(type_);
  if (file.size() != files_.bytes(index)) {
    throw DataError(Complaint{.where = file.path().string(),
                              .found = fmt::format("{} bytes", file.size()),
                              .expected = fmt::format("{}, as when it was first opened", files_.bytes(index)),
                              .hint = "the file was truncated or replaced while it was in use"});
  }
  return hash_file(file, [&](int64_t at, std::span<const std::byte> piece) {
    const int64_t first = std::max(at, offset), last = std::min(at + static_cast<int64_t>(piece.size()), end);
    if (first >= last) return;
    const std::span<const std::byte> tokens = piece.subspan(static_cast<size_t>(first - at), static_cast<size_t>(last - first));
    if (mask) return check_mask_bytes(tokens, file.path(), first);
    check_token_range(tokens, type_, vocabulary_.size, file.path(), first);
  });
}

void BareStore::compare(size_t index, const FileHashes& known, const FileHashes& now) const {
  if (known == now) return;
  const std::string path = files_.path(index).string();
  for (size_t i = 0; i < std::min(known.chunks.size(), now.chunks.size()); ++i) {
    if (known.chunks[i] == now.chunks[i]) continue;
    throw DataError(Complaint{.where = fmt::format("{} at byte {}", path, static_cast<int64_t>(i) * kHashChunkBytes),
                              .found = "other bytes in the 64 MiB from there: sha256 " + now.chunks[i],
                              .expected = known.chunks[i] + " as when it was first read",
                              .hint = "size and time of the file are unchanged: the storage may be failing"});
  }
  throw DataError(Complaint{.where = path, .found = "sha256 " + now.sha256, .expected = known.sha256, .hint = "the file was changed"});
}

void BareStore::scan_all(ThreadPool* pool, bool again) const {
  const std::lock_guard lock(mutex_);
  std::vector<size_t> wanted;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    if (again || !hashes_[i]) wanted.push_back(i);
  }
  if (wanted.empty()) return;
  // The first damaged file in order is reported, whichever thread finds one first.
  std::vector<HashedFile> found(wanted.size());
  std::vector<std::exception_ptr> errors(wanted.size());
  const auto body = [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    try {
      found[at] = scan(wanted[at]);
      if (hashes_[wanted[at]]) compare(wanted[at], *hashes_[wanted[at]], found[at].hashes);
    } catch (...) {
      errors[at] = std::current_exception();
    }
  };
  if (pool) {
    pool->parallel_for(static_cast<int64_t>(wanted.size()), body);
  } else {
    for (size_t i = 0; i < wanted.size(); ++i) body(static_cast<int64_t>(i));
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    cache_->put(files_.path(wanted[i]), found[i]);
    hashes_[wanted[i]] = std::move(found[i].hashes);
  }
  cache_->save();
}

void BareStore::verify(ThreadPool& pool) const { scan_all(&pool, true); }

void BareStore::hash(ThreadPool& pool) const { scan_all(&pool, false); }

std::optional<std::string> BareStore::known_sha256(int64_t entry) const {
  const std::lock_guard lock(mutex_);
  const std::optional<FileHashes>& hashes = hashes_[static_cast<size_t>(entry)];
  return hashes ? std::optional(hashes->sha256) : std::nullopt;
}

std::string BareStore::digest() const {
  scan_all(nullptr, false);
  Sha256 hash;
  hash.update(
      fmt::format("{}\ndtype {}\nvocab {}\neos {}\nbos {}\n", kFormat, name_of(type_), vocabulary_.size, vocabulary_.eos_id, vocabulary_.bos_id));
  const auto count = static_cast<size_t>(size());
  for (size_t i = 0; i < count; ++i) {
    hash.update(fmt::format("{} {}\n", entries_[i].tokens, hashes_[i]->sha256));
    if (has_label_masks_) hash.update(fmt::format("mask {}\n", hashes_[count + i]->sha256));
  }
  return hash.hex();
}

std::string BareStore::manifest_json() const {
  using Json = nlohmann::ordered_json;
  Json json = {{"format", kFormat},
               {"dtype", name_of(type_)},
               {"vocab_size", vocabulary_.size},
               {"eos_id", vocabulary_.eos_id},
               {"bos_id", vocabulary_.bos_id},
               {"digest", digest()},
               {"files", Json::array()}};
  const auto count = static_cast<size_t>(size());
  for (size_t i = 0; i < count; ++i) {
    const TokenEntry& entry = entries_[i];
    Json file = {{"path", entry.name}, {"label", entry.label}, {"bytes", entry.bytes}, {"tokens", entry.tokens}, {"sha256", hashes_[i]->sha256}};
    if (has_label_masks_) file["mask_sha256"] = hashes_[count + i]->sha256;
    json["files"].push_back(std::move(file));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dz::data
