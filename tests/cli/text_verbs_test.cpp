// tokenizer-train, tokenize, encode and decode through the program: files, exit codes, messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "cli/corpus_options.h"
#include "cli/run.h"

namespace dz::cli {
namespace {

using test::Outcome;
using test::run_shell;

class TextVerbs : public testing::Test {
 protected:
  TextVerbs() {
    std::string name = (fs::temp_directory_path() / "dz-verbs-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~TextVerbs() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Outcome deltazero(const std::string& arguments) const {
    return run_shell(std::string("cd '") + folder_.string() + "' && '" DZ_BINARY "' " + arguments);
  }
  fs::path folder_;
  const std::string golden_ = std::string(DZ_GOLDEN) + "/tokenizer/";
};

TEST_F(TextVerbs, TrainWritesTheFileOfTheLibrary) {
  const std::string input = "tokenizer-train --input '" + golden_ + "corpus-mixed.txt' --special '<|pad|>' --vocab 512 --out sub/t.json ";
  for (const auto& [options, file] : {std::pair{"--threads 2", "mixed-lines-512.json"}, std::pair{"--feed documents", "mixed-512.json"}}) {
    const Outcome outcome = deltazero(input + options);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(read_file(folder_ / "sub/t.json"), read_file(golden_ + file));
  }
}

TEST_F(TextVerbs, LinesOfTextsAndIds) {
  const std::string tokenizer = "--tokenizer '" + golden_ + "mixed-512.json' --jsonl ";
  write_file_atomic(folder_ / "in.jsonl", "{\"text\": \"a<|endoftext|>\"}\n\n{\"bytes_hex\": \"61ff\", \"id\": 7}\r\n{\"text\": \"\"}");
  EXPECT_EQ(deltazero("encode " + tokenizer + "in.jsonl --offsets").text,
            "{\"ids\": [66, 0], \"offsets\": [[0, 1], [1, 14]]}\n{\"ids\": [66, 173, 125, 123], \"offsets\": [[0, 1], [1, 2], [2, 2], [2, "
            "2]]}\n{\"ids\": [], \"offsets\": []}\n");
  EXPECT_EQ(deltazero("encode --ordinary " + tokenizer + "in.jsonl | head -n 1").text.find("{\"ids\": [66, 29, "), 0u);
  EXPECT_EQ(deltazero("encode " + tokenizer + "- < in.jsonl | '" DZ_BINARY "' decode " + tokenizer + "-").text,
            "{\"text\": \"a<|endoftext|>\"}\n{\"text\": \"a\uFFFD\"}\n{\"text\": \"\"}\n");
  EXPECT_EQ(deltazero("encode " + tokenizer + "- < in.jsonl | '" DZ_BINARY "' decode --skip-special " + tokenizer + "- | head -n 1").text,
            "{\"text\": \"a\"}\n");
}

TEST_F(TextVerbs, BadLinesAreNamedByFileAndNumber) {
  const std::string tokenizer = " --tokenizer '" + golden_ + "mixed-512.json' --jsonl ";
  const std::pair<const char*, const char*> kLines[] = {{"encode", "[1]"},
                                                        {"encode", "{\"text\": 1}"},
                                                        {"encode", "{}"},
                                                        {"encode", "{\"bytes_hex\": \"6\"}"},
                                                        {"encode", "{\"bytes_hex\": \"6g\"}"},
                                                        {"encode", "{\"text\": \"a"},
                                                        {"decode", "{\"ids\": 1}"},
                                                        {"decode", "{\"ids\": [-1]}"},
                                                        {"decode", "{\"ids\": [3000000000]}"},
                                                        {"decode", "7"}};
  for (const auto& [verb, line] : kLines) {
    write_file_atomic(folder_ / "in.jsonl", std::string(verb == std::string("encode") ? "{\"text\": \"\"}" : "{\"ids\": []}") + "\n" + line + "\n");
    const Outcome outcome = deltazero(verb + tokenizer + "in.jsonl");
    EXPECT_EQ(outcome.code, 65) << line;
    EXPECT_NE(outcome.text.find("in.jsonl:2"), std::string::npos) << outcome.text;
  }
  EXPECT_EQ(deltazero("encode" + tokenizer + "missing.jsonl").code, 66);
  fs::create_directories(folder_ / "a directory");
  EXPECT_EQ(deltazero("encode" + tokenizer + "'a directory'").code, 66);
  write_file_atomic(folder_ / "in.jsonl", "{\"text\": 5}\n");
  EXPECT_EQ(deltazero("encode" + tokenizer + "in.jsonl").text.find("--field"), std::string::npos);
  write_file_atomic(folder_ / "in.jsonl", "{\"text\": \"a\n");
  EXPECT_EQ(deltazero("encode" + tokenizer + "in.jsonl").text.find(".,"), std::string::npos);
  // One byte order mark at the beginning is none of the text's; a second one is an error.
  write_file_atomic(folder_ / "plain.jsonl", "{\"text\": \"a\"}\n");
  write_file_atomic(folder_ / "in.jsonl", "\xEF\xBB\xBF{\"text\": \"a\"}\n");
  EXPECT_EQ(deltazero("encode" + tokenizer + "in.jsonl").text, deltazero("encode" + tokenizer + "plain.jsonl").text);
  EXPECT_EQ(deltazero("encode" + tokenizer + "in.jsonl").code, 0);
  write_file_atomic(folder_ / "in.jsonl", "\xEF\xBB\xBF\xEF\xBB\xBF{\"text\": \"a\"}\n");
  EXPECT_EQ(deltazero("encode" + tokenizer + "in.jsonl").code, 65);
  write_file_atomic(folder_ / "in.jsonl", "{\"text\": \"a\xFF\"}\n{\"text\": \"\xFE\"}\n");
  EXPECT_NE(deltazero("encode" + tokenizer + "in.jsonl 2>&1").text.find("note: 2 ill-formed UTF-8 sequences replaced"), std::string::npos);
  EXPECT_EQ(deltazero("tokenize --max-shard-tokens 1 --out s --input plain.jsonl --tokenizer '" + golden_ + "mixed-512.json'").code, 64);
  EXPECT_EQ(deltazero("encode --text a" + tokenizer + "in.jsonl").code, 64);
}

TEST_F(TextVerbs, BenchEncodesTheDocumentsOfTheYardsticks) {
  // 3 documents of 20,000 bytes and more, cut behind the line end; a NEL (C2 85) ends a line, as in Python.
  write_file_atomic(folder_ / "text.txt", std::string(19999, 'a') + "\r\n" + std::string(20000, 'b') + "\xC2\x85" + "c");
  for (const char* threads : {"1", "2"}) {
    const Outcome outcome =
        deltazero("bench tokenizer --tokenizer '" + golden_ + "mixed-512.json' --input text.txt --seconds 0 --json --threads " + threads);
    EXPECT_EQ(outcome.code, 0);
    const auto record = nlohmann::json::parse(outcome.text);
    EXPECT_EQ(record["documents"], 3);
    EXPECT_EQ(record["bytes"], 40004);
    EXPECT_EQ(record["rounds"], 1);
    const Outcome ids = deltazero("encode --tokenizer '" + golden_ + "mixed-512.json' < text.txt");
    EXPECT_EQ(record["tokens"].get<int64_t>(), 1 + std::count(ids.text.begin(), ids.text.end(), ' '));
    EXPECT_GT(record["encode"].get<double>(), 0);
  }
}

TEST_F(TextVerbs, EncodeAndDecodeAreInverse) {
  const std::string tokenizer = "--tokenizer '" + golden_ + "mixed-512.json'";
  EXPECT_EQ(deltazero("encode " + tokenizer + " --text 'a<|endoftext|>b'").text, "66 0 67\n");
  EXPECT_NE(deltazero("encode --ordinary " + tokenizer + " --text 'a<|endoftext|>b'").text, "66 0 67\n");
  EXPECT_EQ(deltazero("decode " + tokenizer + " 66 0 67").text, "a<|endoftext|>b");
  EXPECT_EQ(deltazero("decode --skip-special " + tokenizer + " '[66, 0, 67]'").text, "ab");
  EXPECT_EQ(deltazero("encode " + tokenizer + " --text ''").text, "\n");
  const Outcome round = deltazero("encode " + tokenizer + " <'" + golden_ + "corpus-mixed.txt' >ids && '" DZ_BINARY "' decode " + tokenizer +
                                  " <ids | cmp - '" + golden_ + "corpus-mixed.txt'");
  EXPECT_EQ(round.code, 0) << round.text;
}

TEST_F(TextVerbs, MistakesHaveOneMessageAndTheirExitCode) {
  const std::string tokenizer = "--tokenizer '" + golden_ + "mixed-512.json' ";
  const std::string corpus = "--input '" + golden_ + "corpus-code.txt' ";
  struct Mistake {
    std::string arguments;
    ExitCode code;
    const char* says;
  };
  write_file_atomic(folder_ / "bad.json", "{\"version\":\"1.0\"}");
  write_file_atomic(folder_ / "bad.jsonl", "{\"text\": \"a\"}\n{\"txt\":\"b\"}\n");
  write_file_atomic(folder_ / "blank.txt", " \n");
  dz::create_directories(folder_ / "foreign");
  write_file_atomic(folder_ / "foreign/thesis.doc", "mine");
  const Mistake mistakes[] = {
      {"tokenizer-train --out t.json", ExitCode::kUsage, "--input"},
      {"tokenizer-train --input none --out t.json", ExitCode::kNoInput, "none"},
      {"tokenizer-train --input blank.txt --out t.json", ExitCode::kBadData, "no text"},
      {"tokenizer-train --vocab 99 --out t.json " + corpus, ExitCode::kUsage, "at least 257"},
      {"tokenizer-train --feed words --out t.json " + corpus, ExitCode::kUsage, "words"},
      {"tokenizer-train --vocab 300 --out /proc/none/t.json " + corpus, ExitCode::kCannotCreate, "/proc/none"},
      {"tokenize --out s --tokenizer none.json " + corpus, ExitCode::kNoInput, "none.json"},
      {"tokenize --out s --tokenizer bad.json " + corpus, ExitCode::kBadData, "bad.json"},
      {"tokenize --out s --input bad.jsonl " + tokenizer, ExitCode::kBadData, "bad.jsonl:2: text: found no such field"},
      {"tokenize --out s --held-out 1 " + tokenizer + corpus, ExitCode::kUsage, "held-out"},
      {"tokenize --out foreign " + tokenizer + corpus, ExitCode::kCannotCreate, "foreign"},
      {"tokenize --out s --input a/x.txt b/x.txt " + tokenizer, ExitCode::kUsage, "NAME=b/x.txt"},
      {"decode " + tokenizer + "12 abc", ExitCode::kBadData, "abc"},
      {"decode " + tokenizer + "99999999999", ExitCode::kBadData, "99999999999"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = deltazero(mistake.arguments);
    EXPECT_EQ(outcome.code, static_cast<int>(mistake.code)) << mistake.arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(mistake.says), std::string::npos) << mistake.arguments << "\n" << outcome.text;
  }
  EXPECT_EQ(read_file(folder_ / "foreign/thesis.doc"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "t.json"));
}

TEST_F(TextVerbs, TokenizeWarnsOfSpecialTokensInTheText) {
  write_file_atomic(folder_ / "one.txt", "Hello<|endoftext|>there");
  const Outcome outcome = deltazero("tokenize --out s --input web=one.txt --tokenizer '" + golden_ + "mixed-512.json'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.text.find("web: 1 document spells out a special token"), std::string::npos) << outcome.text;
  EXPECT_TRUE(fs::exists(folder_ / "s/manifest.json"));
}

TEST(CorpusInputs, NamesAndPaths) {
  const std::vector<CorpusInput> inputs = parse_inputs({"perl=text/a=b", "dir/code/", "x/web.jsonl", "perl=more", "./a/b=c"});
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(inputs[0].name, "perl");
  EXPECT_EQ(inputs[0].paths, (std::vector<fs::path>{"text/a=b", "more"}));
  EXPECT_EQ(inputs[1].name, "code");
  EXPECT_EQ(inputs[2].name, "web.jsonl");
  EXPECT_EQ(inputs[3].name, "b=c");
  EXPECT_THROW(parse_inputs({"a/x", "b/x"}), UsageError);
  EXPECT_THROW(parse_inputs({"x=a", "b/x"}), UsageError);
  for (const char* bad : {"name=", "", "/"}) EXPECT_THROW(parse_inputs({bad}), UsageError) << bad;
}

}  // namespace
}  // namespace dz::cli
