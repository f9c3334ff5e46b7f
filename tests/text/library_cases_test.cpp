// Every supported flag, normalizer and split behaviour: small tokenizers and what the library makes of texts (tests/golden/tokenizer/cases.json).
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/golden.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

using nlohmann::json;

// Widened to whole characters, as the library gives them.
std::vector<Span> char_spans(const std::string& text, std::vector<Span> spans) {
  const auto inside = [&](int64_t at) {
    return at < static_cast<int64_t>(text.size()) && (static_cast<unsigned char>(text[static_cast<size_t>(at)]) & 0xC0) == 0x80;
  };
  for (Span& span : spans) {
    while (inside(span.begin)) --span.begin;
    while (inside(span.end)) ++span.end;
  }
  return spans;
}

// How many rows of the case differ, in anything.
int64_t differences(const json& tokenizer_json, const json& rows) {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json.dump(), "case");
  Encoder encoder(tokenizer);
  int64_t different = 0;
  for (const json& row : rows) {
    const std::string text = row["text"];
    const Ids expected = row["ids"];
    Ids ids;
    std::vector<Span> spans;
    encoder.encode(text, SpecialTokens::kParsed, ids, spans);
    bool same = ids == expected && spans.size() == ids.size() && tokenizer.encode(text) == ids;
    same = same && tokenizer.encode_ordinary(text) == row.value("ids_special_as_text", expected);
    same = same && tokenizer.decode(expected) == row["decoded"].get<std::string>();
    int64_t before = 0;
    for (const Span& span : spans) {
      same = same && span.begin >= before && span.end >= span.begin && span.end <= static_cast<int64_t>(text.size());
      before = span.end;
    }
    if (row.contains("char_bytes")) {
      std::vector<Span> library;
      for (const json& span : row["char_bytes"]) library.push_back({span[0], span[1]});
      same = same && char_spans(text, spans) == library;
    }
    if (row.contains("ids_with_template")) {
      Ids around = tokenizer.template_in_front();
      around.insert(around.end(), ids.begin(), ids.end());
      around.insert(around.end(), tokenizer.template_behind().begin(), tokenizer.template_behind().end());
      same = same && around == row["ids_with_template"].get<Ids>();
    }
    different += !same;
  }
  return different;
}

TEST(LibraryCases, IdsTextsAndOffsetsAreTheLibrarys) {
  const json cases = golden_json("cases.json");
  EXPECT_EQ(cases.size(), 30u);
  for (const json& item : cases) EXPECT_EQ(differences(item["tokenizer"], item["rows"]), 0) << item["name"];
}

struct Control {
  const char* name;
  const char* pointer;
  const char* value;
};

// Each changes one thing that the case is there for, and must show.
const Control kControls[] = {
    {"flags of added tokens", "/added_tokens/1/lstrip", "false"},
    {"flags of added tokens", "/added_tokens/1/rstrip", "false"},
    {"flags of added tokens", "/added_tokens/2/single_word", "false"},
    {"flags of added tokens behind NFC", "/normalizer", "null"},
    {"ignore_merges", "/model/ignore_merges", "false"},
    {"prefix space", "/pre_tokenizer/add_prefix_space", "false"},
    {"prefix space at pieces", "/pre_tokenizer/pretokenizers/1/add_prefix_space", "false"},
    {"prefix space at pieces", "/pre_tokenizer/pretokenizers/1/use_regex", "false"},
    {"digits one by one", "/pre_tokenizer/pretokenizers/0/individual_digits", "false"},
    {"template", "/post_processor", "null"},
    {"Regex removed False", "/pre_tokenizer/pretokenizers/0/invert", "true"},
    {"Regex merged_with_next False", "/pre_tokenizer/pretokenizers/0/behavior", "\"MergedWithPrevious\""},
    {"Regex contiguous False", "/pre_tokenizer/pretokenizers/0/behavior", "\"Isolated\""},
    {"String isolated False", "/pre_tokenizer/pretokenizers/0/pattern/String", "\" o\""},
};

TEST(LibraryCases, AChangedFlagIsNoticed) {
  const json cases = golden_json("cases.json");
  for (const Control& control : kControls) {
    const auto item = std::find_if(cases.begin(), cases.end(), [&](const json& one) { return one["name"] == control.name; });
    ASSERT_NE(item, cases.end()) << control.name;
    json changed = (*item)["tokenizer"];
    ASSERT_NE(changed.at(json::json_pointer(control.pointer)), json::parse(control.value)) << control.name << control.pointer;
    changed[json::json_pointer(control.pointer)] = json::parse(control.value);
    EXPECT_GT(differences(changed, (*item)["rows"]), 0) << control.name << control.pointer;
  }
}

TEST(LibraryCases, OffsetsTileTheText) {
  for (const json& item : golden_json("cases.json")) {
    const std::string name = item["name"];
    if (name.find("removed") != std::string::npos || name == "small alphabet") continue;  // these drop text
    const Tokenizer tokenizer = Tokenizer::parse(item["tokenizer"].dump(), "case");
    for (const json& row : item["rows"]) {
      const std::string text = row["text"];
      Ids ids;
      std::vector<Span> spans;
      Encoder(tokenizer).encode(text, SpecialTokens::kParsed, ids, spans);
      int64_t end = 0;
      for (const Span& span : spans) {
        EXPECT_EQ(span.begin, end) << name << ": " << text;
        end = span.end;
      }
      EXPECT_EQ(end, static_cast<int64_t>(text.size())) << name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace dz::text
