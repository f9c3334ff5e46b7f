#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/token_shards.h"

namespace dz::data {

static_assert(std::endian::native == std::endian::little, "shards are written as they lie in memory");

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

void check_name(std::string_view name) {
  const bool odd = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (name.empty() || name.size() > 200 || odd) {
    throw DataError(Complaint{.where = "source name",
                              .found = fmt::format("\"{}\"", name),
                              .expected = "1 to 200 bytes without control characters",
                              .hint = "name it: --input NAME=PATH"});
  }
}

// The first part of the source's file names: the name itself, or something like it that no other source can have.
std::string file_stem(std::string_view name, size_t index) {
  std::string stem(name);
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  if (stem.front() == '.') stem.front() = '_';
  return stem == name ? stem : fmt::format("{}~{}", stem, index);
}

// Ours: empty, finished (a manifest that we can read), or left over from an attempt that was killed.
void check_ours(const fs::path& directory, const fs::path& partial) {
  if (!fs::exists(directory)) return;
  if (!fs::is_directory(directory))
    throw CreateError(Complaint{.where = directory.string(), .found = "a file", .expected = "a directory", .hint = ""});
  if (fs::is_empty(directory) || fs::exists(partial)) return;
  const fs::path manifest = directory / "manifest.json";
  const Complaint foreign{.where = directory.string(),
                          .found = "files that are not token shards",
                          .expected = "an empty or new directory, or an older result of tokenize",
                          .hint = ""};
  if (!fs::exists(manifest)) throw CreateError(foreign);
  try {
    parse_token_manifest(read_file(manifest), manifest.string());
  } catch (const DataError&) {
    throw CreateError(foreign);
  }
}

std::vector<std::string> files_of(const TokenManifest& manifest) {
  std::vector<std::string> files;
  for (const Source& source : manifest.sources) {
    for (const Stream& stream : source.splits) {
      for (const ShardFile& file : stream.files) files.push_back(file.path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

struct TokenShardWriter::Open {
  Stream* stream(TokenManifest& manifest) const { return &manifest.sources[source].stream(split); }
  size_t source = 0;
  Split split = Split::kTrain;
  std::string name;
  int64_t shard_tokens = 0;  // in the open file, the buffer included
  bool has_file = false;
  File file;
  std::unique_ptr<Sha256> hash;
  std::vector<std::byte> buffer;
};

TokenShardWriter::TokenShardWriter(const fs::path& directory, const Settings& settings)
    : directory_(directory), partial_(directory / ".partial"), settings_(settings) {
  DZ_CHECK(settings.vocab_size >= 1 && settings.vocab_size <= int64_t{1} << 31, "vocab_size", settings.vocab_size);
  DZ_CHECK(settings.eos_id >= 0 && settings.eos_id < settings.vocab_size, "eos_id", settings.eos_id, "vocab_size", settings.vocab_size);
  DZ_CHECK(settings.shard_tokens >= 1, "shard_tokens", settings.shard_tokens);
  manifest_.vocab_size = settings.vocab_size;
  manifest_.eos_id = settings.eos_id;
  manifest_.type = token_type_for(settings.vocab_size);
  manifest_.tokenizer_sha256 = settings.tokenizer_sha256;
  check_ours(directory_, partial_);
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  dz::create_directories(partial_);
}

TokenShardWriter::~TokenShardWriter() {
  // Once files are being moved, what is in .partial marks the directory as ours for the next attempt.
  if (moving_) return;
  open_.clear();
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  fs::remove(directory_, ignored);  // only when it was made for us and is empty
}

TokenShardWriter::Open& TokenShardWriter::open(std::string_view source, Split split) {
  auto& sources = manifest_.sources;
  auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& entry) { return entry.name == source; });
  if (found == sources.end()) {
    check_name(source);
    sources.push_back({.name = std::string(source), .splits = {}});
    found = sources.end() - 1;
  }
  const auto index = static_cast<size_t>(found - sources.begin());
  auto& slot = open_[{index, static_cast<size_t>(split)}];
  if (!slot) {
    slot = std::make_unique<Open>();
    slot->source = index;
    slot->split = split;
    slot->name = fmt::format("{}.{}", file_stem(source, index), name_of(split));
  }
  return *slot;
}

// Writes the buffer out; at the end of a shard also closes its file and enters it into the manifest.
void TokenShardWriter::flush(Open& out, bool end_of_shard) {
  if (!out.has_file) {
    if (out.shard_tokens == 0) return;
    out.file = File::create(partial_ / fmt::format("{}-{:05}.bin", out.name, out.stream(manifest_)->files.size()));
    out.hash = std::make_unique<Sha256>();
    out.has_file = true;
  }
  out.file.write(out.buffer);
  out.hash->update(out.buffer);
  out.buffer.clear();
  if (!end_of_shard) return;
  out.file.sync();
  out.file.close();
  Stream& stream = *out.stream(manifest_);
  stream.files.push_back({.path = out.file.path().filename().string(), .tokens = out.shard_tokens, .sha256 = out.hash->hex()});
  stream.tokens += out.shard_tokens;
  out.shard_tokens = 0;
  out.has_file = false;
}

void TokenShardWriter::put(Open& out, int32_t id) {
  const auto width = static_cast<size_t>(size_of(manifest_.type));
  const auto value = static_cast<uint32_t>(id);
  out.buffer.resize(out.buffer.size() + width);
  std::memcpy(out.buffer.data() + out.buffer.size() - width, &value, width);
  ++out.shard_tokens;
  if (out.shard_tokens == settings_.shard_tokens) {
    flush(out, true);
  } else if (out.buffer.size() >= kBufferBytes) {
    flush(out, false);
  }
}

void TokenShardWriter::append(std::string_view source, Split split, std::span<const int32_t> ids) {
  DZ_CHECK(!moving_);
  Open& out = open(source, split);
  if (ids.empty()) return;
  for (const int32_t id : ids) {
    if (id < 0 || id >= settings_.vocab_size) {
      throw DataError(Complaint{.where = "source " + std::string(source),
                                .found = fmt::format("token id {}", id),
                                .expected = fmt::format("0 to {}", settings_.vocab_size - 1),
                                .hint = "the tokenizer and its vocabulary size do not fit"});
    }
  }
  for (const int32_t id : ids) put(out, id);
  if (ids.back() != settings_.eos_id) put(out, static_cast<int32_t>(settings_.eos_id));
  ++out.stream(manifest_)->documents;
}

TokenManifest TokenShardWriter::finish() {
  DZ_CHECK(!moving_);
  for (auto& [key, out] : open_) flush(*out, true);
  open_.clear();
  if (!settings_.tokenizer_json.empty()) write_file_atomic(partial_ / "tokenizer.json", settings_.tokenizer_json);
  write_file_atomic(partial_ / "manifest.json", to_json(manifest_));

  moving_ = true;
  const fs::path target = directory_ / "manifest.json";
  std::vector<std::string> old_files;
  std::error_code ignored;
  if (fs::exists(target)) {
    old_files = files_of(parse_token_manifest(read_file(target), target.string()));
    // From here to the last rename the directory has no manifest: a reader refuses it rather than mixing old and new shards.
    fs::remove(target, ignored);
    sync_directory(directory_);
  }
  const std::vector<std::string> files = files_of(manifest_);
  for (const std::string& file : files) rename_durably(partial_ / file, directory_ / file);
  if (!settings_.tokenizer_json.empty()) rename_durably(partial_ / "tokenizer.json", directory_ / "tokenizer.json");
  rename_durably(partial_ / "manifest.json", target);
  for (const std::string& file : old_files) {
    if (!std::binary_search(files.begin(), files.end(), file)) fs::remove(directory_ / file, ignored);
  }
  fs::remove_all(partial_, ignored);
  return manifest_;
}

}  // namespace dz::data
