#include "data/token_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "data/shard_output.h"
#include "data/token_writer_open.h"

namespace dz::data {
namespace {

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

std::string describe(std::string_view source, const DocumentOrigin& origin) {
  std::string text = "source " + std::string(source);
  if (origin.loc > 0) text += fmt::format(", {}:{}", origin.src, origin.loc);
  if (!origin.id.empty()) text += fmt::format(", id {}", origin.id.substr(0, 100));
  return text;
}

void check_ids(std::span<const int32_t> ids, int64_t vocab_size, const std::string& where) {
  int32_t least = 0, largest = 0;
  for (const int32_t id : ids) {
    least = std::min(least, id);
    largest = std::max(largest, id);
  }
  if (least >= 0 && largest < vocab_size) return;
  throw DataError(Complaint{.where = where,
                            .found = fmt::format("token id {}", least < 0 ? least : largest),
                            .expected = fmt::format("0 to {}", vocab_size - 1),
                            .hint = "the tokenizer and its vocabulary size do not fit"});
}

}  // namespace

TokenShardWriter::TokenShardWriter(const fs::path& directory, Settings settings)
    : directory_(directory), partial_(directory / ".partial"), settings_(std::move(settings)) {
  DZ_CHECK(settings_.vocab_size >= 1 && settings_.vocab_size <= int64_t{1} << 31, "vocab_size", settings_.vocab_size);
  DZ_CHECK(settings_.eos_id >= 0 && settings_.eos_id < settings_.vocab_size, "eos_id", settings_.eos_id, "vocab_size", settings_.vocab_size);
  DZ_CHECK(settings_.bos_id >= -1 && settings_.bos_id < settings_.vocab_size, "bos_id", settings_.bos_id, "vocab_size", settings_.vocab_size);
  DZ_CHECK(settings_.shard_tokens >= 1 && settings_.chunk_bytes >= 1, "shard_tokens", settings_.shard_tokens);
  manifest_.vocab_size = settings_.vocab_size;
  manifest_.eos_id = settings_.eos_id;
  manifest_.bos_id = settings_.bos_id;
  manifest_.type = token_type_for(settings_.vocab_size);
  manifest_.chunk_bytes = settings_.chunk_bytes;
  manifest_.tokenizer_sha256 = settings_.tokenizer_sha256;
  find_attempt();
}

TokenShardWriter::~TokenShardWriter() {
  open_.clear();
  // What was committed waits for the next attempt; once files are being moved, .partial marks the directory as ours.
  if (!committed_ && !moving_) {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
    fs::remove(directory_, ignored);  // only when it was made for us and is empty
  }
  if (lock_ >= 0) ::close(lock_);
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
  auto& slot = open_[std::pair{index, static_cast<size_t>(split)}];
  if (!slot) slot = make_open(index, split);
  return *slot;
}

std::unique_ptr<TokenShardWriter::Open> TokenShardWriter::make_open(size_t source, Split split) const {
  auto out = std::make_unique<Open>();
  out->source = source;
  out->split = split;
  out->stem = fmt::format("{}.{}", file_stem(manifest_.sources[source].name, source), name_of(split));
  return out;
}

ShardOutput& TokenShardWriter::output(Open& out) {
  if (!out.output) out.output = std::make_unique<ShardOutput>(out.place(*this));
  return *out.output;
}

void TokenShardWriter::end_shard(Open& out) {
  if (!out.output) return;
  superseded_.push_back(out.output->rows_path());
  Stream& stream = manifest_.sources[out.source].stream(out.split);
  stream.files.push_back(out.output->close());
  stream.tokens += stream.files.back().tokens;
  out.output.reset();
}

void TokenShardWriter::append(std::string_view source, Split split, std::span<const int32_t> ids, const DocumentOrigin& origin) {
  DZ_CHECK(!moving_ && !all_written_);
  Open& out = open(source, split);
  if (ids.empty()) return;
  check_ids(ids, settings_.vocab_size, describe(source, origin));

  const bool has_bos = settings_.bos_id >= 0;
  document_.clear();
  if (has_bos && ids.front() != settings_.bos_id) document_.push_back(static_cast<int32_t>(settings_.bos_id));
  document_.insert(document_.end(), ids.begin(), ids.end());
  // With BOS = EOS the token in front does not end the document too.
  if (document_.back() != settings_.eos_id || (has_bos && document_.size() == 1)) document_.push_back(static_cast<int32_t>(settings_.eos_id));

  const auto size = static_cast<int64_t>(document_.size());
  if (settings_.whole_documents && size > settings_.shard_tokens) {
    throw DataError(Complaint{.where = describe(source, origin),
                              .found = fmt::format("a document of {} tokens", size),
                              .expected = fmt::format("at most {}, which is what a file holds", settings_.shard_tokens),
                              .hint = "raise --max-shard-tokens, or let documents go on in the next file"});
  }
  if (settings_.whole_documents && out.output && size > settings_.shard_tokens - out.output->tokens()) end_shard(out);
  for (std::span<const int32_t> rest = document_; !rest.empty();) {
    ShardOutput& shard = output(out);
    const int64_t start = shard.tokens(), room = settings_.shard_tokens - start;
    const std::span<const int32_t> part = rest.first(std::min(rest.size(), static_cast<size_t>(room)));
    shard.put(part);
    shard.put_row(start, shard.tokens(), origin);
    if (shard.tokens() == settings_.shard_tokens) end_shard(out);
    rest = rest.subspan(part.size());
  }
  ++manifest_.sources[out.source].stream(split).documents;
}

void TokenShardWriter::close_source(std::string_view source) {
  for (auto it = open_.begin(); it != open_.end();) {
    if (manifest_.sources[it->second->source].name == source) {
      end_shard(*it->second);
      it = open_.erase(it);
    } else {
      ++it;
    }
  }
}

void TokenShardWriter::commit(const std::string& note) {
  DZ_CHECK(!moving_ && !all_written_ && !settings_.fingerprint.empty());
  for (auto& [key, out] : open_) {
    if (out->output) out->synced = out->output->sync();
  }
  sync_directory(partial_);
  write_state(note);
  committed_ = true;
  std::error_code ignored;
  for (const fs::path& path : std::exchange(superseded_, {})) fs::remove(path, ignored);
}

TokenManifest TokenShardWriter::finish(const std::string& note) {
  DZ_CHECK(!moving_);
  if (!all_written_) {
    for (auto& [key, out] : open_) end_shard(*out);
    open_.clear();
    if (!settings_.tokenizer_json.empty()) write_file_atomic(partial_ / "tokenizer.json", settings_.tokenizer_json);
    replaces_ = files_to_replace();
    // With this state and the manifest an attempt that is cut off from here on has only to be moved.
    if (!settings_.fingerprint.empty()) {
      write_state(note);
      committed_ = true;
    }
    write_file_atomic(partial_ / "manifest.json", to_json(manifest_));
  }
  move_into_place();
  return manifest_;
}

}  // namespace dz::data
