#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/fingerprint.h"
#include "data/index.h"
#include "data/index_format.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostTokens = int64_t{1} << 60;

// An object of the index, complained about by key.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail("", json.type_name(), "an object");
  }
  bool has(const char* key) const { return json_.contains(key); }
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
      fail(key, value.dump(-1, ' ', true, Json::error_handler_t::replace), fmt::format("an integer from {} to {}", least, most));
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, at(key).type_name(), "a string");
    return at(key).get<std::string>();
  }
  const Json& list(const char* key) const {
    if (!at(key).is_array()) fail(key, at(key).type_name(), "a list");
    return at(key);
  }
  std::string where(const std::string& key) const { return where_ + ": " + key; }
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = key.empty() ? where_ : where(key), .found = found.substr(0, 80), .expected = expected, .hint = ""});
  }
  void expect(const char* key, int64_t expected, const char* why) const {
    const int64_t found = integer(key, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    if (found != expected) fail(key, std::to_string(found), fmt::format("{}, {}", expected, why));
  }

 private:
  const Json& json_;
  std::string where_;
};

// Names of the keys in which the two formats differ.
struct Keys {
  const char *tokens, *instances, *offset;
};
constexpr Keys kOurKeys = {"tokens", "instances", "offset"}, kMaxTextKeys = {"n_tokens", "n_instances", "instance_offset"};

void read_files(const Object& in, bool ours, TokenIndex& index) {
  const Keys& keys = ours ? kOurKeys : kMaxTextKeys;
  int64_t offset = 0, tokens = 0;
  for (const Json& item : in.list("files")) {
    const Object entry(item, in.where(fmt::format("files[{}]", index.files.size())));
    IndexedFile file{.path = entry.text("path"), .label = entry.text("label"), .sha256 = std::nullopt};
    file.tokens = entry.integer(keys.tokens, 0, kMostTokens);
    tokens += file.tokens;
    if (tokens > kMostTokens) entry.fail(keys.tokens, std::to_string(file.tokens), "a smaller sum");
    file.instances = file.tokens / index.sequence_length;
    file.offset = offset;
    entry.expect(keys.instances, file.instances, "the tokens divided by the sequence length");
    entry.expect(keys.offset, file.offset, "the instances of the files before");
    offset += file.instances;
    if (ours) {
      file.bytes = entry.integer("bytes", 0, std::numeric_limits<int64_t>::max());
      if (!entry.at("sha256").is_null()) file.sha256 = entry.text("sha256");
      if (file.sha256 && file.sha256->size() != 64) entry.fail("sha256", *file.sha256, "64 hexadecimal digits, or null");
      if (file.bytes / size_of(index.type) < file.tokens) entry.fail("bytes", std::to_string(file.bytes), "enough for the tokens");
    }
    index.files.push_back(std::move(file));
  }
  in.expect("total_instances", offset, "the sum of the files");
  in.expect("total_tokens", tokens, "the sum of the files");
}

void read_vocabulary(const Object& in, Vocabulary& vocabulary) {
  vocabulary.size = in.integer("vocab_size", 1, int64_t{1} << 31);
  vocabulary.eos_id = in.integer("eos_id", -1, vocabulary.size - 1);
  vocabulary.bos_id = in.integer("bos_id", -1, vocabulary.size - 1);
}

std::string expected_fingerprint(const TokenIndex& index, bool ours) {
  if (ours) return index_fingerprint(index);
  std::vector<FingerprintFile> files;
  for (const IndexedFile& file : index.files) files.push_back({.path = file.path, .size = file.tokens});
  return maxtext_fingerprint(index.sequence_length, name_of(index.type), index.tokenizer, files);
}

}  // namespace

TokenIndex parse_index(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw DataError(Complaint{.where = where, .found = "text that is not JSON", .expected = "an index", .hint = ""});
  const Object in(json, where);
  const bool ours = in.has("format");
  if (ours && in.text("format") != kIndexFormat) in.fail("format", in.text("format"), std::string(kIndexFormat));
  if (!ours && in.text("format_version") != "1") in.fail("format_version", in.text("format_version"), "1");
  TokenIndex index;
  index.sequence_length = in.integer("sequence_length", 1, kMostTokens);
  index.type = parse_token_type(in.text("dtype"), in.where("dtype"));
  index.tokenizer = in.text("tokenizer");
  if (ours) read_vocabulary(in, index.vocabulary);
  read_files(in, ours, index);
  const std::string fingerprint = expected_fingerprint(index, ours);
  if (in.text("fingerprint") != fingerprint) in.fail("fingerprint", in.text("fingerprint"), fingerprint + " for what the index says");
  return index;
}

}  // namespace dz::data
