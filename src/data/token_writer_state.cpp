// Attempts that were cut off: what is kept of them, how the next one goes on, and how a finished one is moved into place.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/token_writer.h"
#include "data/token_writer_open.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "deltazero-tokenize-state-2";
constexpr const char* kState = "state.json";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kLock = "lock";
// Where the state lies while .partial is removed, so that it is the last to go.
constexpr const char* kLastState = ".state.json";

// Ours: empty, finished (a manifest that we can read), or left over from an attempt that was killed.
void check_ours(const fs::path& directory, const fs::path& partial) {
  if (!fs::exists(directory)) return;
  if (!fs::is_directory(directory))
    throw CreateError(Complaint{.where = directory.string(), .found = "a file", .expected = "a directory", .hint = ""});
  if (fs::is_empty(directory) || fs::exists(partial)) return;
  const fs::path manifest = directory / kManifest;
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
      for (const ShardFile& file : stream.files) {
        files.push_back(file.path);
        if (!file.documents_path.empty()) files.push_back(file.documents_path);
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

ShardOutput::Place TokenShardWriter::Open::place(const TokenShardWriter& writer) const {
  const size_t number = writer.manifest_.sources[source].stream(split).files.size();
  return {.directory = writer.partial_,
          .stem = fmt::format("{}-{:05}", stem, number),
          .type = writer.manifest_.type,
          .chunk_bytes = writer.settings_.chunk_bytes};
}

void TokenShardWriter::lock() {
  const fs::path path = partial_ / kLock;
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) throw CreateError(path.string() + ": cannot create: " + std::strerror(errno));
  // A file system without locks gives another error: then nobody is warned.
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(lock_);
  lock_ = -1;
  throw TryAgainError(directory_.string() + ": another tokenize is writing here; wait for it, or choose another directory with --out");
}

void TokenShardWriter::find_attempt() {
  check_ours(directory_, partial_);
  dz::create_directories(partial_);
  lock();
  if (fs::exists(directory_ / kLastState)) rename_durably(directory_ / kLastState, partial_ / kState);
  const TokenManifest empty = manifest_;
  try {
    committed_ = restore();
  } catch (const Error& error) {
    notice_ = fmt::format("an interrupted attempt cannot be continued ({}); starting over", error.what());
  } catch (const Json::exception&) {
    notice_ = fmt::format("an interrupted attempt cannot be continued ({} is damaged); starting over", kState);
  }
  if (committed_) return;
  open_.clear();
  note_.clear();
  all_written_ = in_place_ = false;
  replaces_.clear();
  manifest_ = empty;
  clear_partial();
}

// False when there is nothing to continue; throws when something is wrong with it.
bool TokenShardWriter::restore() {
  if (settings_.fingerprint.empty() || !fs::exists(partial_ / kState)) return false;
  const Json state = Json::parse(read_file(partial_ / kState));
  if (state.at("format") != kFormat) throw DataError(fmt::format("{}: found another format, expected {}", kState, kFormat));
  std::vector<std::string> changed;
  for (const auto& [name, value] : settings_.fingerprint)
    if (state.at("fingerprint").value(name, "") != value) changed.push_back(name);
  if (!changed.empty()) {
    notice_ = fmt::format("an interrupted attempt was made with other {}; starting over", joined(changed));
    return false;
  }
  TokenManifest manifest = parse_token_manifest(state.at("manifest").get<std::string>(), kState);
  if (manifest.vocab_size != manifest_.vocab_size || manifest.eos_id != manifest_.eos_id || manifest.bos_id != manifest_.bos_id ||
      manifest.type != manifest_.type || manifest.chunk_bytes != manifest_.chunk_bytes)
    throw DataError(fmt::format("{}: found other ids or widths", kState));
  manifest_ = std::move(manifest);
  in_place_ = is_in_place();
  all_written_ = in_place_ || fs::exists(partial_ / kManifest);
  replaces_ = state.at("replaces").get<std::vector<std::string>>();
  check_files();
  for (const Json& entry : state.at("open")) {
    const auto source = entry.at("source").get<size_t>();
    const Split split = parse_split(entry.at("split").get<std::string>(), kState);
    if (source >= manifest_.sources.size()) throw DataError(fmt::format("{}: found source {}", kState, source));
    std::unique_ptr<Open> out = make_open(source, split);
    out->output = std::make_unique<ShardOutput>(out->place(*this), ShardOutput::Synced{.tokens = entry.at("tokens"),
                                                                                       .row_bytes = entry.at("row_bytes"),
                                                                                       .tokens_hash = entry.at("tokens_hash"),
                                                                                       .rows_hash = entry.at("rows_hash")});
    open_[std::pair{source, static_cast<size_t>(split)}] = std::move(out);
  }
  note_ = state.at("note").get<std::string>();
  notice_ = "going on with an interrupted attempt";
  return true;
}

// The state of a finish() whose last move is done: a manifest that is ours, with nothing of it left in .partial.
bool TokenShardWriter::is_in_place() const {
  if (fs::exists(partial_ / kManifest) || !fs::exists(directory_ / kManifest) || read_file(directory_ / kManifest) != to_json(manifest_))
    return false;
  const std::vector<std::string> files = files_of(manifest_);
  return std::none_of(files.begin(), files.end(), [&](const std::string& file) { return fs::exists(partial_ / file); });
}

// Every finished file is there with what was written; when all was written, it may be in its final place already.
void TokenShardWriter::check_files() const {
  const auto place = [&](const std::string& name) { return all_written_ && !fs::exists(partial_ / name) ? directory_ / name : partial_ / name; };
  for (const Source& source : manifest_.sources) {
    for (const Stream& stream : source.splits) {
      for (const ShardFile& file : stream.files) {
        const int64_t bytes = File::open_read(place(file.path)).size(), expected = file.tokens * size_of(manifest_.type);
        if (bytes != expected) throw DataError(fmt::format("{}: found {} bytes, expected {}", file.path, bytes, expected));
        check_sha256(place(file.path), file.sha256);
        if (!file.documents_path.empty()) check_sha256(place(file.documents_path), file.documents_sha256);
      }
    }
  }
}

void TokenShardWriter::clear_partial() {
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(partial_))
    if (entry.path().filename() != kLock) old.push_back(entry.path());
  std::error_code error;
  for (const fs::path& path : old) {
    fs::remove_all(path, error);
    if (error) throw IoError(path.string() + ": cannot remove what an interrupted attempt left: " + error.message());
  }
}

void TokenShardWriter::write_state(const std::string& note) const {
  Json fingerprint = Json::object(), open = Json::array();
  for (const auto& [name, value] : settings_.fingerprint) fingerprint[name] = value;
  for (const auto& [key, out] : open_) {
    if (!out->output) continue;
    open.push_back({{"source", out->source},
                    {"split", name_of(out->split)},
                    {"tokens", out->synced.tokens},
                    {"row_bytes", out->synced.row_bytes},
                    {"tokens_hash", out->synced.tokens_hash},
                    {"rows_hash", out->synced.rows_hash}});
  }
  const Json state = {{"format", kFormat}, {"fingerprint", fingerprint}, {"manifest", to_json(manifest_)},
                      {"open", open},      {"replaces", replaces_},      {"note", note}};
  write_file_atomic(partial_ / kState, state.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<std::string> TokenShardWriter::files_to_replace() const {
  const fs::path manifest = directory_ / kManifest;
  return fs::exists(manifest) ? files_of(parse_token_manifest(read_file(manifest), manifest.string())) : std::vector<std::string>();
}

void TokenShardWriter::move_into_place() {
  moving_ = true;
  if (in_place_) return clean_up();
  std::error_code ignored;
  // From here to the last rename the directory has no manifest: a reader refuses it rather than mixing old and new shards.
  fs::remove(directory_ / kManifest, ignored);
  sync_directory(directory_);
  const std::vector<std::string> files = files_of(manifest_);
  const auto move = [&](const std::string& name) {
    std::error_code error;
    if (fs::exists(partial_ / name)) fs::rename(partial_ / name, directory_ / name, error);
    if (error) throw IoError((partial_ / name).string() + ": cannot move it to " + directory_.string() + ": " + error.message());
  };
  for (const std::string& file : files) move(file);
  move(kTokenizer);
  sync_directory(directory_);
  rename_durably(partial_ / kManifest, directory_ / kManifest);
  clean_up();
}

// The state goes last: cut off before, the next attempt knows that the result is its own.
void TokenShardWriter::clean_up() {
  std::error_code ignored;
  const std::vector<std::string> files = files_of(manifest_);
  for (const std::string& file : replaces_) {
    if (!std::binary_search(files.begin(), files.end(), file)) fs::remove(directory_ / file, ignored);
  }
  if (fs::exists(partial_ / kState)) rename_durably(partial_ / kState, directory_ / kLastState);
  fs::remove_all(partial_, ignored);
  fs::remove(directory_ / kLastState, ignored);
}

}  // namespace dz::data
