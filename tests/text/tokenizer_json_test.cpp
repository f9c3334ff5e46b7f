// Reading tokenizer.json: both spellings of merges, refusals by name, damaged files.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "text/golden.h"
#include "text/tokenizer.h"

namespace dz::text {
namespace {

using nlohmann::json;

std::string message_of(const std::string& text) {
  try {
    Tokenizer::parse(text, "t.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(TokenizerJson, MergesAsStringsAreTheSameTokenizer) {
  json root = golden_json("mixed-512.json");
  json strings = json::array({"#version: 0.2"});
  for (const auto& pair : root["model"]["merges"]) strings.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
  const Tokenizer pairs = Tokenizer::parse(root.dump(), "pairs");
  root["model"]["merges"] = strings;
  const Tokenizer joined = Tokenizer::parse(root.dump(), "strings");
  const std::string text = golden_text("corpus-mixed.txt");
  const Ids ids = pairs.encode(text);
  EXPECT_EQ(joined.encode(text), ids);
  std::reverse(root["model"]["merges"].begin(), root["model"]["merges"].end());  // another order of merges is another tokenizer
  EXPECT_NE(Tokenizer::parse(root.dump(), "reversed").encode(text), ids);
}

TEST(TokenizerJson, IgnoreMergesTakesAWholePieceThatIsAToken) {
  json root = golden_json("mixed-300.json");
  root["model"]["vocab"]["zyzzyva"] = 300;
  EXPECT_NE(Tokenizer::parse(root.dump(), "t").encode("zyzzyva"), Ids{300});
  root["model"]["ignore_merges"] = true;
  EXPECT_EQ(Tokenizer::parse(root.dump(), "t").encode("zyzzyva"), Ids{300});
}

struct Refusal {
  const char* pointer;  // where to put `value`
  const char* value;
  const char* key;  // what the message must name
};

const Refusal kRefusals[] = {
    {"/version", "\"2.0\"", "version"},
    {"/normalizer", R"({"type":"NFKC"})", "normalizer"},
    {"/truncation", R"({"max_length":5})", "truncation"},
    {"/post_processor", R"({"type":"TemplateProcessing"})", "post_processor"},
    {"/decoder", R"({"type":"Fuse"})", "decoder"},
    {"/pre_tokenizer", R"({"type":"Whitespace"})", "pre_tokenizer"},
    {"/pre_tokenizer", "null", "pre_tokenizer"},
    {"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("\\p{Lu}+")", "pre_tokenizer.pretokenizers[0].pattern"},
    {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "7", "pre_tokenizer.pretokenizers[0].pattern"},
    {"/pre_tokenizer/pretokenizers/0/invert", "0", "invert"},
    {"/pre_tokenizer/pretokenizers/0/behavior", "\"Cut\"", "behavior"},
    {"/pre_tokenizer/pretokenizers/1", R"({"type":"Digits"})", "ByteLevel"},
    {"/pre_tokenizer/pretokenizers/2", R"({"type":"Digits"})", "pre_tokenizer.pretokenizers[2]"},
    {"/pre_tokenizer/pretokenizers/1/add_prefix_space", "1", "add_prefix_space"},
    {"/pre_tokenizer/pretokenizers/1/use_regex", "1", "use_regex"},
    {"/model/type", "\"WordPiece\"", "model.type"},
    {"/model/dropout", "0.1", "model.dropout"},
    {"/model/end_of_word_suffix", "\"</w>\"", "model.end_of_word_suffix"},
    {"/model/vocab", "[]", "model.vocab"},
    {"/model/vocab/a", "-1", "model.vocab.a"},
    {"/model/vocab/a", "1.5", "model.vocab.a"},
    {"/model/vocab/a", "18446744073709551615", "model.vocab.a"},
    {"/model/vocab/a", "2000000000", "2000000000"},
    {"/model/vocab/a", "3", "two tokens"},
    {"/model/merges", "{}", "model.merges"},
    {"/model/merges/7", "\"a b c\"", "model.merges[7]"},
    {"/model/merges/7", R"(["a", 1])", "model.merges[7]"},
    {"/model/merges/7", R"(["a", "no such token"])", "no such token"},
    {"/added_tokens/0/id", "5", "added_tokens[0].id"},
    {"/added_tokens/0/lstrip", "1", "added_tokens[0].lstrip"},
    {"/added_tokens/0/content", "\"\"", "added_tokens[0].content"},
    {"/added_tokens/0/content", "null", "added_tokens[0].content"},
    {"/added_tokens/0/special", "\"yes\"", "added_tokens[0].special"},
};

TEST(TokenizerJson, WhatIsNotSupportedIsRefusedByName) {
  const json good = golden_json("mixed-300.json");
  EXPECT_EQ(message_of(good.dump()), "");
  for (const Refusal& refusal : kRefusals) {
    json root = good;
    root[json::json_pointer(refusal.pointer)] = json::parse(refusal.value);
    const std::string message = message_of(root.dump());
    EXPECT_NE(message.find("t.json: "), std::string::npos) << refusal.pointer << ": " << message;
    EXPECT_NE(message.find(refusal.key), std::string::npos) << refusal.pointer << ": " << message;
  }
}

TEST(TokenizerJson, DamagedFilesNeverDoWorseThanADataError) {
  const std::string good = golden_text("ties-300.json");
  TestRandom random(4);
  int64_t refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string bad = good;
    for (uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const size_t at = random.below(bad.size());
      switch (random.below(4)) {
        case 0:
          bad[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bad.erase(at, 1 + random.below(30));
          break;
        case 2:
          bad.insert(at, bad.substr(random.below(bad.size()), random.below(30)));
          break;
        default:
          bad[at] = "{}[]\",:0123456789"[random.below(17)];
          break;
      }
      if (bad.empty()) bad = "{";
    }
    try {
      const Tokenizer tokenizer = Tokenizer::parse(bad, "t.json");
      tokenizer.decode(tokenizer.encode("aaab bcw  ===== \n"));
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(TokenizerJson, HostileShapes) {
  EXPECT_NE(message_of(""), "");
  EXPECT_NE(message_of("null"), "");
  EXPECT_NE(message_of(std::string(10'000'000, '[')).find("brackets deep"), std::string::npos);
  EXPECT_NE(message_of(golden_text("mixed-300.json").substr(0, 2000)).find("no valid JSON"), std::string::npos);
  EXPECT_THROW(Tokenizer::load(golden_path("no such file.json")), InputError);
}

}  // namespace
}  // namespace dz::text
