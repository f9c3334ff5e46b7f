#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "data/token_shards.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "deltazero-tokens-1";
// Far above any corpus, and small enough that a byte count or a sum of two never leaves int64.
constexpr int64_t kMostTokens = int64_t{1} << 60;

bool stays_inside(const std::string& path) {
  const fs::path parsed(path);
  return !path.empty() && parsed.is_relative() && path.find('\0') == std::string::npos &&
         std::none_of(parsed.begin(), parsed.end(), [](const fs::path& part) { return part == ".."; });
}

// Access to a JSON object that reports the path of the key that is wrong.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail("", json.type_name(), "an object");
  }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(key, "nothing", "a value");
    return *found;
  }
  int64_t integer(const char* key, int64_t least, int64_t most) const {
    const Json& value = at(key);
    const bool fits =
        value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
      fail(key, value.dump(), fmt::format("an integer from {} to {}", least, most));
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(key, value.type_name(), "a string");
    return value.get<std::string>();
  }
  bool has(const char* key) const { return json_.contains(key); }
  std::string sha256(const char* key) const {
    const std::string digits = text(key);
    if (digits.size() != 64) fail(key, digits, "64 hexadecimal digits");
    return digits;
  }
  std::string path(const char* key) const {
    const std::string path = text(key);
    if (!stays_inside(path)) fail(key, path, "a path inside the directory");
    return path;
  }
  const Json& list(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) fail(key, value.type_name(), "a list");
    return value;
  }
  std::string where(const std::string& key) const { return where_ + (key.empty() ? "" : ": " + key); }
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = where(key), .found = found.substr(0, 80), .expected = expected, .hint = "run tokenize again"});
  }

 private:
  const Json& json_;
  std::string where_;
};

// What older manifests do not have: hashes of chunks, and the list of documents.
void parse_extras(const Reader& file, int64_t bytes, int64_t chunk_bytes, ShardFile& entry) {
  if (file.has("chunks")) {
    for (const Json& chunk : file.list("chunks")) {
      if (!chunk.is_string() || chunk.get<std::string>().size() != 64) file.fail("chunks", chunk.dump(), "64 hexadecimal digits");
      entry.chunks.push_back(chunk.get<std::string>());
    }
    const int64_t expected = bytes / chunk_bytes + (bytes % chunk_bytes > 0);
    if (static_cast<int64_t>(entry.chunks.size()) != expected)
      file.fail("chunks", std::to_string(entry.chunks.size()), fmt::format("{} for {} bytes", expected, bytes));
  }
  if (file.has("documents")) {
    const Reader documents(file.at("documents"), file.where("documents"));
    entry.documents_path = documents.path("path");
    entry.documents_sha256 = documents.sha256("sha256");
  }
}

Stream parse_stream(const Reader& in, TokenType type, int64_t chunk_bytes) {
  Stream stream;
  stream.documents = in.integer("documents", 0, kMostTokens);
  stream.tokens = in.integer("tokens", 0, kMostTokens);
  int64_t sum = 0;
  for (const Json& item : in.list("files")) {
    const Reader file(item, in.where("files"));
    ShardFile entry{.path = file.path("path"), .tokens = file.integer("tokens", 0, kMostTokens), .sha256 = file.sha256("sha256")};
    const int64_t bytes = file.integer("bytes", 0, kMostTokens * 4);
    if (bytes != entry.tokens * size_of(type)) file.fail("bytes", std::to_string(bytes), std::to_string(entry.tokens * size_of(type)));
    parse_extras(file, bytes, chunk_bytes, entry);
    sum += entry.tokens;
    if (sum > kMostTokens) file.fail("tokens", std::to_string(sum), "a smaller sum");
    stream.files.push_back(std::move(entry));
  }
  if (sum != stream.tokens) in.fail("tokens", std::to_string(stream.tokens), fmt::format("{}, the sum of the files", sum));
  return stream;
}

nlohmann::ordered_json file_json(const ShardFile& file, TokenType type) {
  nlohmann::ordered_json json = {{"path", file.path}, {"tokens", file.tokens}, {"bytes", file.tokens * size_of(type)}, {"sha256", file.sha256}};
  if (!file.chunks.empty()) json["chunks"] = file.chunks;
  if (!file.documents_path.empty()) json["documents"] = {{"path", file.documents_path}, {"sha256", file.documents_sha256}};
  return json;
}

nlohmann::ordered_json stream_json(const Stream& stream, TokenType type) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const ShardFile& file : stream.files) files.push_back(file_json(file, type));
  return {{"documents", stream.documents}, {"tokens", stream.tokens}, {"files", files}};
}

void compare_streams(const std::string& label, const Stream& run, const Stream& now, std::vector<std::string>& out) {
  if (run.tokens != now.tokens) out.push_back(fmt::format("{}: {} tokens in the run, {} now", label, run.tokens, now.tokens));
  const size_t common = std::min(run.files.size(), now.files.size());
  for (size_t i = 0; i < common; ++i) {
    if (run.files[i].sha256 == now.files[i].sha256) continue;
    out.push_back(fmt::format("{}: {}: sha256 {}... in the run, {}... now", label, now.files[i].path, run.files[i].sha256.substr(0, 12),
                              now.files[i].sha256.substr(0, 12)));
  }
  if (run.files.size() != now.files.size()) out.push_back(fmt::format("{}: {} files in the run, {} now", label, run.files.size(), now.files.size()));
}

}  // namespace

std::string_view name_of(TokenType type) { return type == TokenType::kUint16 ? "uint16" : "uint32"; }

TokenType parse_token_type(std::string_view name, const std::string& where) {
  for (const TokenType type : {TokenType::kUint16, TokenType::kUint32}) {
    if (name == name_of(type)) return type;
  }
  const bool other = name == "uint8" || name == "uint64";  // OLMo-core's other two, which no data of its own has
  throw DataError(Complaint{.where = where,
                            .found = fmt::format("\"{}\"", name),
                            .expected = "\"uint16\" or \"uint32\"",
                            .hint = other ? "rewrite the tokens in one of these widths" : ""});
}

std::string_view name_of(Split split) { return split == Split::kTrain ? "train" : "held-out"; }

Split parse_split(std::string_view name, const std::string& where) {
  for (const Split split : kSplits) {
    if (name == name_of(split)) return split;
  }
  throw UsageError(Complaint{.where = where, .found = fmt::format("\"{}\"", name), .expected = "train or held-out", .hint = ""});
}

int64_t TokenManifest::tokens(Split split) const {
  int64_t sum = 0;
  for (const Source& source : sources) sum += source.stream(split).tokens;
  return sum;
}

std::string TokenManifest::digest() const {
  Sha256 hash;
  hash.update(fmt::format("{}\ndtype {}\nvocab {}\neos {}\n", kFormat, name_of(type), vocab_size, eos_id));
  if (bos_id >= 0) hash.update(fmt::format("bos {}\n", bos_id));
  for (const Source& source : sources) {
    hash.update("source\n");
    for (const Split split : kSplits) {
      hash.update(fmt::format("{}\n", name_of(split)));
      for (const ShardFile& file : source.stream(split).files) hash.update(fmt::format("{} {}\n", file.tokens, file.sha256));
    }
  }
  return hash.hex();
}

std::string to_json(const TokenManifest& manifest) {
  nlohmann::ordered_json json = {{"format", kFormat}, {"vocab_size", manifest.vocab_size}, {"eos_id", manifest.eos_id}};
  if (manifest.bos_id >= 0) json["bos_id"] = manifest.bos_id;
  json["dtype"] = name_of(manifest.type);
  json["chunk_bytes"] = manifest.chunk_bytes;
  json["tokenizer_sha256"] = manifest.tokenizer_sha256;
  json["digest"] = manifest.digest();
  json["sources"] = nlohmann::ordered_json::array();
  for (const Source& source : manifest.sources) {
    nlohmann::ordered_json splits;
    for (const Split split : kSplits) splits[std::string(name_of(split))] = stream_json(source.stream(split), manifest.type);
    json["sources"].push_back({{"name", source.name}, {"splits", splits}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

TokenManifest parse_token_manifest(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw DataError(Complaint{.where = where, .found = "text that is not JSON", .expected = "a token manifest", .hint = "run tokenize again"});
  const Reader in(json, where);
  if (in.text("format") != kFormat) in.fail("format", in.text("format"), kFormat);
  TokenManifest manifest;
  manifest.type = parse_token_type(in.text("dtype"), in.where("dtype"));
  manifest.vocab_size = in.integer("vocab_size", 1, int64_t{1} << 31);
  if (manifest.type == TokenType::kUint16 && manifest.vocab_size > 65536)
    in.fail("dtype", "uint16", fmt::format("uint32 for a vocabulary of {}", manifest.vocab_size));
  manifest.eos_id = in.integer("eos_id", 0, manifest.vocab_size - 1);
  if (in.has("bos_id")) manifest.bos_id = in.integer("bos_id", 0, manifest.vocab_size - 1);
  if (in.has("chunk_bytes")) manifest.chunk_bytes = in.integer("chunk_bytes", 1, kMostTokens);
  manifest.tokenizer_sha256 = in.text("tokenizer_sha256");
  int64_t all_tokens = 0;
  for (const Json& item : in.list("sources")) {
    const Reader source(item, in.where("sources"));
    Source entry{.name = source.text("name"), .splits = {}};
    const Reader splits(source.at("splits"), source.where(entry.name));
    for (const Split split : kSplits) {
      const std::string name(name_of(split));
      entry.stream(split) = parse_stream(Reader(splits.at(name.c_str()), splits.where(name)), manifest.type, manifest.chunk_bytes);
    }
    for (const Split split : kSplits) {
      all_tokens += entry.stream(split).tokens;
      if (all_tokens > kMostTokens) in.fail("sources", "more than 2^60 tokens", "a smaller sum");
    }
    manifest.sources.push_back(std::move(entry));
  }
  if (in.text("digest") != manifest.digest()) in.fail("digest", in.text("digest"), manifest.digest() + " for the files it lists");
  return manifest;
}

std::vector<std::string> differences(const TokenManifest& run, const TokenManifest& now) {
  std::vector<std::string> out;
  if (run.digest() == now.digest()) return out;
  if (run.type != now.type) out.push_back(fmt::format("dtype: {} in the run, {} now", name_of(run.type), name_of(now.type)));
  if (run.vocab_size != now.vocab_size) out.push_back(fmt::format("vocab_size: {} in the run, {} now", run.vocab_size, now.vocab_size));
  if (run.eos_id != now.eos_id) out.push_back(fmt::format("eos_id: {} in the run, {} now", run.eos_id, now.eos_id));
  for (size_t i = 0; i < std::min(run.sources.size(), now.sources.size()); ++i) {
    for (const Split split : kSplits) {
      compare_streams(fmt::format("source {}, {}", now.sources[i].name, name_of(split)), run.sources[i].stream(split), now.sources[i].stream(split),
                      out);
    }
  }
  if (run.sources.size() != now.sources.size()) out.push_back(fmt::format("{} sources in the run, {} now", run.sources.size(), now.sources.size()));
  return out;
}

}  // namespace dz::data
