// Reading tokenizer.json: every part that we do not do is refused by name, because ignoring it would give other ids.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "text/byte_alphabet.h"
#include "text/nfc.h"
#include "text/tokenizer_model.h"

namespace dz::text {
namespace {

using nlohmann::json;

// Ids with nothing behind them that a vocabulary may have; bounds what a hostile id can make us allocate.
constexpr int64_t kMaxHoles = 65536;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t kLongest = 120;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

class Reader {
 public:
  Reader(const json& root, const std::string& where) : root_(root), where_(where) {}

  TokenizerModel read();

 private:
  using Vocabulary = std::unordered_map<std::string_view, int32_t>;

  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = where_ + ": " + key, .found = found, .expected = expected, .hint = ""});
  }
  static const json& child(const json& parent, const char* key) {
    static const json kNull;
    if (!parent.is_object()) return kNull;
    const auto it = parent.find(key);
    return it == parent.end() ? kNull : *it;
  }
  bool flag(const json& parent, const std::string& path, const char* key, bool missing) const {
    const json& value = child(parent, key);
    if (value.is_null()) return missing;
    if (!value.is_boolean()) fail(path + key, shown(value), "true or false");
    return value.get<bool>();
  }
  void demand_null(const json& parent, const std::string& path, const char* key) const {
    const json& value = child(parent, key);
    if (!value.is_null()) fail(path + key, shown(value), "null; other values are not supported");
  }
  std::string type_of(const json& value) const {
    const json& type = child(value, "type");
    return type.is_string() ? type.get<std::string>() : std::string();
  }
  int32_t id(const std::string& key, const json& value) const;

  void read_pipeline(TokenizerModel& model) const;
  void check_bpe(const json& bpe) const;
  Vocabulary read_vocabulary(const json& bpe) const;
  void read_added(TokenizerModel& model, const Vocabulary& vocabulary) const;
  AddedToken read_added_token(const json& item, const std::string& key) const;
  void store_added(TokenizerModel& model) const;
  void read_merges(TokenizerModel& model, const json& bpe, const Vocabulary& vocabulary) const;
  std::pair<std::string_view, std::string_view> read_pair(const json& item, const std::string& key) const;
  void store_tokens(TokenizerModel& model, const Vocabulary& vocabulary) const;
  void store_alphabet(TokenizerModel& model, const json& bpe, const Vocabulary& vocabulary) const;
  void store_whole_pieces(TokenizerModel& model, const Vocabulary& vocabulary, bool ignore_merges) const;

  const json& root_;
  const std::string& where_;
};

int32_t Reader::id(const std::string& key, const json& value) const {
  if (!value.is_number_integer() || (value.is_number_unsigned() ? value.get<uint64_t>() > INT32_MAX : value.get<int64_t>() < 0))
    fail(key, shown(value), "an id: a whole number from 0 below 2^31");
  return static_cast<int32_t>(value.get<int64_t>());
}

TokenizerModel Reader::read() {
  if (!root_.is_object()) fail("top level", shown(root_), "an object");
  const json& version = child(root_, "version");
  if (!version.is_string() || version.get<std::string>() != "1.0") fail("version", shown(version), "\"1.0\"");
  TokenizerModel model;
  model.where = where_;
  read_pipeline(model);
  const json& bpe = child(root_, "model");
  check_bpe(bpe);
  const Vocabulary vocabulary = read_vocabulary(bpe);
  read_added(model, vocabulary);
  store_tokens(model, vocabulary);
  store_alphabet(model, bpe, vocabulary);
  read_merges(model, bpe, vocabulary);
  store_whole_pieces(model, vocabulary, flag(bpe, "model.", "ignore_merges", false));
  store_added(model);
  return model;
}

void Reader::read_pipeline(TokenizerModel& model) const {
  for (const char* key : {"truncation", "padding"}) demand_null(root_, "", key);
  json parts = json::object();
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) parts[key] = child(root_, key);
  model.pipeline = parse_pipeline(parts.dump(-1, ' ', false, json::error_handler_t::replace), where_);
}

void Reader::check_bpe(const json& bpe) const {
  if (!bpe.is_object()) fail("model", shown(bpe), "an object");
  const json& type = child(bpe, "type");  // files of before 2021 have none
  if (!type.is_null() && type != "BPE") fail("model.type", shown(type), "\"BPE\"");
  const json& dropout = child(bpe, "dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0))
    fail("model.dropout", shown(dropout), "null: random ids cannot be reproduced");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& value = child(bpe, key);
    if (!value.is_null() && value != "") fail(std::string("model.") + key, shown(value), "null or \"\"");
  }
}

Reader::Vocabulary Reader::read_vocabulary(const json& bpe) const {
  const json& items = child(bpe, "vocab");
  if (!items.is_object()) fail("model.vocab", shown(items), "an object of token: id");
  Vocabulary vocabulary;
  vocabulary.reserve(items.size());
  for (auto it = items.begin(); it != items.end(); ++it) vocabulary.emplace(it.key(), id("model.vocab." + it.key(), *it));
  return vocabulary;
}

AddedToken Reader::read_added_token(const json& item, const std::string& key) const {
  const json& content = child(item, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty()) fail(key + ".content", shown(content), "a string that is not empty");
  return {.content = content.get<std::string>(),
          .id = id(key + ".id", child(item, "id")),
          .special = flag(item, key + ".", "special", false),
          .normalized = flag(item, key + ".", "normalized", true),
          .single_word = flag(item, key + ".", "single_word", false),
          .lstrip = flag(item, key + ".", "lstrip", false),
          .rstrip = flag(item, key + ".", "rstrip", false)};
}

// The library does not take the ids of added tokens from the file: a token of the vocabulary has its id, another one the next that is free.
void Reader::read_added(TokenizerModel& model, const Vocabulary& vocabulary) const {
  const json& items = child(root_, "added_tokens");
  if (items.is_null()) return;
  if (!items.is_array()) fail("added_tokens", shown(items), "a list");
  const auto size = static_cast<int64_t>(vocabulary.size());
  int64_t next = size;
  std::unordered_set<std::string_view> contents;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string key = "added_tokens[" + std::to_string(i) + "]";
    AddedToken token = read_added_token(items[i], key);
    if (!contents.insert(child(items[i], "content").get_ref<const std::string&>()).second) fail(key + ".content", token.content, "each token once");
    const auto known = vocabulary.find(token.content);
    const int64_t expected = known != vocabulary.end() ? known->second : next;
    if (token.id != expected)
      fail(key + ".id", std::to_string(token.id),
           std::to_string(expected) + (known != vocabulary.end() ? ", its id in model.vocab" : ", the next free id, which the library gives it"));
    std::string normal;
    Edits edits;
    token.text = token.normalized && model.pipeline.nfc && normalize_nfc(token.content, normal, edits) ? normal : token.content;
    next = std::max({next, size, static_cast<int64_t>(token.id) + 1});
    model.added.push_back(std::move(token));
  }
  std::stable_sort(model.added.begin(), model.added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

// Special tokens first: of two that the normalizer makes equal, the library finds the first in this order.
void Reader::store_added(TokenizerModel& model) const {
  for (const bool special : {true, false})
    for (const AddedToken& token : model.added)
      if (token.special == special) (token.normalized ? model.normalized_matcher : model.raw_matcher).add(token);
}

void Reader::store_tokens(TokenizerModel& model, const Vocabulary& vocabulary) const {
  const int64_t most = static_cast<int64_t>(vocabulary.size() + model.added.size()) + kMaxHoles;
  std::vector<std::string_view> spelling;
  std::vector<bool> taken;
  const auto place = [&](std::string_view token, int32_t id, bool may_repeat) {
    if (id >= most)
      fail("the id of " + shown(json(std::string(token))), std::to_string(id), "less than " + std::to_string(most) + " for this number of tokens");
    const auto index = static_cast<size_t>(id);
    if (index >= taken.size()) {
      spelling.resize(index + 1);
      taken.resize(index + 1);
    }
    if (taken[index] && !(may_repeat && spelling[index] == token))
      fail("the id " + std::to_string(id), "two tokens, " + shown(json(std::string(spelling[index]))) + " and " + shown(json(std::string(token))),
           "one");
    spelling[index] = token;
    taken[index] = true;
  };
  for (const auto& [token, id] : vocabulary) place(token, id, false);
  for (const AddedToken& token : model.added) {
    place(token.content, token.id, true);
    spelling[static_cast<size_t>(token.id)] = token.text;
  }
  if (taken.empty()) fail("model.vocab", "no token", "at least one");

  model.special.assign(taken.size(), false);
  for (const AddedToken& token : model.added) model.special[static_cast<size_t>(token.id)] = token.special;
  model.token_begins.push_back(0);
  for (const std::string_view token : spelling) {
    // A spelling with a character outside the byte alphabet stands for itself, as in the library's decoder.
    const std::optional<std::string> bytes = bytes_of_spelling(token);
    model.token_bytes += bytes ? std::string_view(*bytes) : token;
    model.token_begins.push_back(static_cast<int64_t>(model.token_bytes.size()));
  }
}

void Reader::store_whole_pieces(TokenizerModel& model, const Vocabulary& vocabulary, bool ignore_merges) const {
  model.whole_pieces.reserve(static_cast<int64_t>(vocabulary.size()));
  std::vector<int32_t> symbols;
  for (const auto& [token, id] : vocabulary) {
    const std::optional<std::string> bytes = bytes_of_spelling(token);
    if (!bytes || bytes->empty()) continue;
    if (!ignore_merges) {
      if (bytes->size() > PieceKey::kMaxSize) continue;
      merge_piece(model, *bytes, symbols);
      if (symbols != std::vector<int32_t>{id}) continue;
    }
    if (bytes->size() <= PieceKey::kMaxSize)
      model.whole_pieces.set(*bytes, id);
    else
      model.whole_longer.emplace(model.bytes_of(id), id);
  }
}

void Reader::store_alphabet(TokenizerModel& model, const json& bpe, const Vocabulary& vocabulary) const {
  bool complete = true;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto it = vocabulary.find(spell_bytes({&c, 1}));
    model.byte_ids[static_cast<size_t>(byte)] = it == vocabulary.end() ? -1 : it->second;
    complete = complete && it != vocabulary.end();
  }
  model.drops_bytes = !complete;
  // With all 256 bytes nothing is unknown, and these options do nothing.
  if (complete) return;
  demand_null(bpe, "model.", "unk_token");
  if (flag(bpe, "model.", "byte_fallback", false)) fail("model.byte_fallback", "true and a vocabulary without all 256 bytes", "false");
}

void Reader::read_merges(TokenizerModel& model, const json& bpe, const Vocabulary& vocabulary) const {
  const json& items = child(bpe, "merges");
  if (!items.is_array()) fail("model.merges", shown(items), "a list");
  model.merges = MergeTable(static_cast<int64_t>(items.size()));
  const auto known = [&](const std::string& key, std::string_view token) {
    const auto it = vocabulary.find(token);
    if (it == vocabulary.end()) fail(key, shown(json(std::string(token))), "a token of model.vocab");
    return it->second;
  };
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string key = "model.merges[" + std::to_string(i) + "]";
    const json& item = items[i];
    if (item.is_string() && item.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = read_pair(item, key);
    const MergeTable::Merge merge{.rank = static_cast<int32_t>(i), .id = known(key, std::string(left) + std::string(right))};
    model.merges.set(known(key, left), known(key, right), merge);
  }
}

std::pair<std::string_view, std::string_view> Reader::read_pair(const json& item, const std::string& key) const {
  if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string())
    return {item[0].get_ref<const std::string&>(), item[1].get_ref<const std::string&>()};
  if (item.is_string()) {
    const std::string_view text = item.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  fail(key, shown(item), "\"left right\" or [\"left\", \"right\"]");
}

// Printing a value walks it recursively, so the depth is limited before anything is built.
constexpr int kMaxNesting = 64;

int nesting(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

}  // namespace

TokenizerModel parse_tokenizer_json(std::string_view text, const std::string& where) {
  if (nesting(text) > kMaxNesting)
    throw DataError(where + ": more than " + std::to_string(kMaxNesting) + " brackets deep, expected a tokenizer.json");
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    throw DataError(
        Complaint{.where = where + " at byte " + std::to_string(error.byte), .found = "no valid JSON", .expected = "a tokenizer.json", .hint = ""});
  }
  TokenizerModel model = Reader(root, where).read();
  model.sha256 = sha256_hex(text);
  return model;
}

}  // namespace dz::text
