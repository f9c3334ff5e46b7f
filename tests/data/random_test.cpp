#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "data/big_seed.h"
#include "data/goldens.h"
#include "data/numpy_random.h"
#include "data/python_random.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

const Json& golden() {
  static const Json json = test::data_golden("order.json");
  return json;
}

BigSeed seed_of(const Json& row) {
  const Json& seed = row.at("seed");
  return seed.is_string() ? BigSeed::parse(seed.get<std::string>(), "seed") : BigSeed(seed.get<uint64_t>());
}

uint64_t number(const Json& text) { return std::stoull(text.get<std::string>()); }
double hex_double(const Json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); }

Ids count_to(int64_t n) {
  Ids ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// One array of up to 1,000 values, else 16 at each end, and the hash of all.
void expect_order(const Ids& ids, const Json& row) {
  EXPECT_EQ(test::sha256_of_words<uint32_t>(ids), row.at("sha256_u32le"));
  if (row.contains("values")) {
    EXPECT_EQ(ids, row.at("values").get<Ids>());
    return;
  }
  ASSERT_GE(ids.size(), 32u);
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 16), row.at("head").get<Ids>());
  EXPECT_EQ(Ids(ids.end() - 16, ids.end()), row.at("tail").get<Ids>());
}

TEST(BigSeed, DecimalTextComesBack) {
  for (const std::string text : {"0", "1", "4294967295", "4294967296", "18446744073709551615", "18446744073709551616",
                                 "340282366920938463463374607431768211456", "1361129467683753853853498429727072845827"})
    EXPECT_EQ(BigSeed::parse(text, "seed").decimal(), text);
  EXPECT_EQ(BigSeed::parse("000", "seed"), BigSeed(0));
  EXPECT_EQ(BigSeed::parse("18446744073709551615", "seed"), BigSeed(~uint64_t{0}));
  EXPECT_EQ(BigSeed::parse("18446744073709551615", "seed").plus(1).decimal(), "18446744073709551616");
  EXPECT_EQ(BigSeed(0).plus(0), BigSeed(0));
  EXPECT_EQ(BigSeed(0xffffffff).plus(~uint64_t{0}).decimal(), "18446744078004518910");
}

TEST(BigSeed, AnythingElseIsRefusedByName) {
  for (const std::string& text :
       {std::string(), std::string("-1"), std::string("1e3"), std::string(" 1"), std::string("0x10"), std::string(1001, '1')})
    EXPECT_NE(test::message_of<UsageError>([&] { BigSeed::parse(text, "--seed"); }).find("--seed"), std::string::npos) << text;
}

TEST(NumpyRandom, SeedsAndDrawsOfPcg64) {
  ASSERT_EQ(golden()["pcg64"].size(), 14u);
  for (const Json& row : golden()["pcg64"]) {
    const BigSeed seed = seed_of(row);
    EXPECT_EQ(seed_sequence(seed, 8), row["seed_sequence_u32"].get<std::vector<uint32_t>>()) << row["seed"];
    NumpyGenerator raw(seed), words(seed), doubles(seed);
    for (const Json& value : row["raw64"]) EXPECT_EQ(raw.raw64(), number(value)) << row["seed"];
    for (const Json& value : row["next32"]) EXPECT_EQ(words.next32(), value.get<uint32_t>()) << row["seed"];
    for (const Json& value : row["doubles"]) EXPECT_EQ(doubles.random(), hex_double(value)) << row["seed"];
  }
}

TEST(NumpyRandom, ShufflesAndTheDrawsTheyConsume) {
  ASSERT_EQ(golden()["shuffle"].size(), 95u);
  for (const Json& row : golden()["shuffle"]) {
    NumpyGenerator generator(seed_of(row));
    Ids ids = count_to(row["n"]);
    generator.shuffle(std::span(ids));
    expect_order(ids, row);
    if (row["has_uint32_after"] == 1) {
      NumpyGenerator copy = generator;
      EXPECT_EQ(copy.next32(), row["uinteger_after"].get<uint32_t>());
    }
    EXPECT_EQ(generator.raw64(), number(row["next_raw64_after"])) << row["seed"] << " of " << row["n"];
  }
}

TEST(NumpyRandom, Permutations) {
  ASSERT_EQ(golden()["permutation"].size(), 85u);
  for (const Json& row : golden()["permutation"]) expect_order(NumpyGenerator(seed_of(row)).permutation(row["n"]), row);
}

TEST(NumpyRandom, ShufflesOfRows) {
  ASSERT_EQ(golden()["shuffle_rows"].size(), 15u);
  for (const Json& row : golden()["shuffle_rows"]) {
    const int64_t rows = row["rows"], columns = row["cols"];
    Ids values = count_to(rows * columns), expected;
    NumpyGenerator(seed_of(row)).shuffle_rows(std::span(values), static_cast<size_t>(columns));
    for (const Json& line : row["values"]) {
      for (const Json& value : line) expected.push_back(value);
    }
    EXPECT_EQ(values, expected) << row["seed"] << " " << rows << " x " << columns;
  }
}

TEST(NumpyRandom, Integers) {
  ASSERT_EQ(golden()["integers"].size(), 50u);
  for (const Json& row : golden()["integers"]) {
    NumpyGenerator generator(seed_of(row));
    const int64_t low = std::stoll(row["low"].get<std::string>()), high = std::stoll(row["high"].get<std::string>());
    for (const Json& value : row["values"])
      EXPECT_EQ(generator.integers(low, high), std::stoll(value.get<std::string>())) << row["seed"] << " " << high;
    EXPECT_EQ(NumpyGenerator(seed_of(row)).integers(low, high), std::stoll(row["first_scalar"].get<std::string>()));
  }
}

// Calls of several kinds on one generator share the half word that a 32-bit draw leaves.
TEST(NumpyRandom, MixedCallsShareTheHalfWord) {
  ASSERT_EQ(golden()["mixed"].size(), 5u);
  for (const Json& row : golden()["mixed"]) {
    NumpyGenerator generator(seed_of(row));
    for (const Json& call : row["calls"]) {
      const std::string name = call[0];
      if (name == "shuffle") {
        Ids ids = count_to(call[1]);
        generator.shuffle(std::span(ids));
        EXPECT_EQ(ids, call[2].get<Ids>());
      } else if (name == "integers(0,10)") {
        EXPECT_EQ(generator.integers(0, 10), call[1].get<int64_t>());
      } else if (name == "integers(0,2**40)") {
        EXPECT_EQ(generator.integers(0, int64_t{1} << 40), std::stoll(call[1].get<std::string>()));
      } else {
        ASSERT_EQ(name, "random");
        EXPECT_EQ(generator.random(), hex_double(call[1]));
      }
    }
  }
}

// shuffle rejects under a mask, integers multiplies: taking one for the other gives another order.
TEST(NumpyRandom, LemireInTheShuffleWouldShow) {
  Ids wrong = count_to(1000), right = wrong;
  NumpyGenerator lemire(1), masked(1);
  for (size_t i = wrong.size(); i-- > 1;) std::swap(wrong[i], wrong[static_cast<size_t>(lemire.integers(0, static_cast<int64_t>(i) + 1))]);
  masked.shuffle(std::span(right));
  EXPECT_NE(wrong, right);
}

TEST(PythonRandom, EqualsCPython) {
  ASSERT_EQ(golden()["python_random"].size(), 8u);
  for (const Json& row : golden()["python_random"]) {
    std::string text = row["seed"];
    if (text[0] == '-') text.erase(0, 1);
    const BigSeed seed = BigSeed::parse(text, "seed");
    PythonRandom bits(seed), doubles(seed), sampled(seed), below(seed);
    for (const Json& value : row["bits32"]) EXPECT_EQ(bits.getrandbits(32), value.get<uint64_t>()) << text;
    for (const Json& value : row["random"]) EXPECT_EQ(doubles.random(), hex_double(value)) << text;
    for (const Json& pair : row["randrange"]) EXPECT_EQ(below.randbelow(pair[0]), pair[1].get<uint64_t>()) << text << " " << pair[0];
    EXPECT_EQ(sampled.sample(100, 20), row["sample_20_of_100"].get<Ids>()) << text;
    for (const int64_t n : {1, 2, 10, 20, 998, 1000}) {
      const Json& expected = row["shuffle_" + std::to_string(n)];
      Ids ids = count_to(n);
      PythonRandom(seed).shuffle(std::span(ids));
      EXPECT_EQ(ids, (expected.is_array() ? expected : expected["values"]).get<Ids>()) << text << " " << n;
      if (expected.is_object()) {
        EXPECT_EQ(test::sha256_of_words<uint32_t>(ids), expected["sha256_u32le"]);
      }
    }
  }
}

TEST(PythonRandom, OrdersSourceFiles) {
  const Json pieces = test::data_golden("pieces.json");
  ASSERT_EQ(pieces["source_permutation"].size(), 2u);
  for (const Json& row : pieces["source_permutation"]) {
    Ids files = count_to(row["files"]);
    PythonRandom(row["source_permutation_seed"].get<uint64_t>()).shuffle(std::span(files));
    EXPECT_EQ(files, row["order"].get<Ids>());
  }
}

}  // namespace
}  // namespace dz::data
