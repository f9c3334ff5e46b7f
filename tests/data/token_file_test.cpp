#include "data/token_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;
using test::spill;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

template <class Id>
std::string packed(const std::vector<uint32_t>& ids) {
  std::string bytes(ids.size() * sizeof(Id), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    const Id id = static_cast<Id>(ids[i]);
    std::memcpy(bytes.data() + i * sizeof(Id), &id, sizeof(Id));
  }
  return bytes;
}

std::string npy(const std::string& dict, const std::string& data) {
  std::string header = dict;
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

TEST(NpyHeader, EveryHeaderOfNumpyIsReadAsMaxTextReadsIt) {
  const json golden = test::data_golden("maxtext.json");
  int rows = 0;
  for (const json& row : golden["npy_headers"]) {
    const NpyHeader header = parse_npy_header(as_bytes(from_hex(row["header_hex"])), "golden");
    EXPECT_EQ(header.dtype, row["dtype"]);
    EXPECT_EQ(header.data_offset, row["data_offset"]);
    EXPECT_EQ(header.shape, row["shape"].get<std::vector<int64_t>>());
    ++rows;
  }
  EXPECT_EQ(rows, 18);
}

TEST(NpyHeader, AnythingElseIsRefusedByName) {
  const std::pair<std::string, const char*> cases[] = {
      {"{'descr': '<u4', 'fortran_order': False, }", "without all three keys"},
      {"{'descr': '<u4', 'fortran_order': False, 'shape': (5,), 'extra': 1}", "the key 'extra'"},
      {"{'descr': '<u4', 'descr': '<u4', 'fortran_order': False, 'shape': (5,)}", "twice"},
      {"{'descr': [('a', '<u4')], 'fortran_order': False, 'shape': (5,)}", "no string"},
      {"{'descr': '<u4', 'fortran_order': 0, 'shape': (5,)}", "neither True nor False"},
      {"{'descr': '<u4', 'fortran_order': False, 'shape': (5)}", "not a tuple"},
      {"{'descr': '<u4', 'fortran_order': False, 'shape': (-5,)}", "no number"},
      {"{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too large"},
      {"{'descr': '<u4', 'fortran_order': False, 'shape': (5,)", "no comma"},
      {"{'descr': '<u4", "unfinished string"},
      {"", "no '{'"},
  };
  for (const auto& [dict, expected] : cases) {
    const std::string message = message_of<DataError>([&] { parse_npy_header(as_bytes(npy(dict, "")), "x.npy"); });
    EXPECT_NE(message.find(expected), std::string::npos) << dict << ": " << message;
  }
  const std::string good = npy("{'descr': '<u4', 'fortran_order': False, 'shape': (5,), }", "");
  EXPECT_EQ(parse_npy_header(as_bytes(good), "x").shape, std::vector<int64_t>{5});
  for (size_t length = 0; length < good.size(); ++length) EXPECT_THROW(parse_npy_header(as_bytes(good).first(length), "x"), DataError) << length;
  std::string version = good;
  version[6] = 4;
  EXPECT_THROW(parse_npy_header(as_bytes(version), "x"), DataError);
  std::string huge = std::string("\x93NUMPY\x02\x00", 8) + "\xff\xff\xff\xff";
  EXPECT_THROW(parse_npy_header(as_bytes(huge), "x"), DataError);
}

TEST(TokenLayout, ATrueNpyIsReadPastItsHeaderAndAnyOtherIsRefused) {
  const test::TemporaryDirectory directory;
  const auto layout = [&](const std::string& bytes, TokenType type) {
    spill(directory / "x.npy", bytes);
    return token_layout(File::open_read(directory / "x.npy"), type);
  };
  const std::string ids = packed<uint32_t>({1, 65535, 65536, 100257, 100277});
  const std::string good = npy("{'descr': '<u4', 'fortran_order': False, 'shape': (5,), }", ids);
  EXPECT_EQ(layout(good, TokenType::kUint32).data_offset, 128);
  EXPECT_EQ(layout(good, TokenType::kUint32).tokens, 5);
  const auto refusal = [&](const std::string& bytes, TokenType type) { return message_of<DataError>([&] { layout(bytes, type); }); };
  EXPECT_NE(refusal(good, TokenType::kUint16).find("header would be taken for tokens"), std::string::npos);
  EXPECT_NE(refusal(good + "x", TokenType::kUint32).find("149 bytes"), std::string::npos);
  EXPECT_NE(refusal(good.substr(0, 144), TokenType::kUint32).find("truncated"), std::string::npos);
  EXPECT_NE(refusal(npy("{'descr': '>u4', 'fortran_order': False, 'shape': (5,)}", ids), TokenType::kUint32).find(">u4"), std::string::npos);
  EXPECT_NE(refusal(npy("{'descr': '<u4', 'fortran_order': False, 'shape': (5, 1)}", ids), TokenType::kUint32).find("2 dimensions"),
            std::string::npos);
  EXPECT_EQ(layout(npy("{'descr': '<u4', 'fortran_order': True, 'shape': (5,)}", ids), TokenType::kUint32).tokens, 5);  // the same for one dimension
  EXPECT_EQ(layout(ids, TokenType::kUint32).data_offset, 0);
  EXPECT_EQ(layout(ids + "xyz", TokenType::kUint32).left_over, 3);
  EXPECT_EQ(layout("", TokenType::kUint32).tokens, 0);
}

TEST(OtherWidth, TokensOfTheOtherWidthAreRecognised) {
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 64; ++i) ids.push_back((i * 7919 + 13) % 100278);
  const auto looks = [](const std::string& bytes, TokenType type, int64_t vocab) { return other_width(as_bytes(bytes), type, vocab).has_value(); };
  EXPECT_TRUE(looks(packed<uint32_t>(ids), TokenType::kUint16, 50280));
  EXPECT_TRUE(looks(packed<uint32_t>({1, 65535, 65536, 100257, 100277}), TokenType::kUint16, 65536));
  EXPECT_FALSE(looks(packed<uint32_t>(ids), TokenType::kUint32, 100278));
  EXPECT_FALSE(looks(packed<uint16_t>(ids), TokenType::kUint16, 50280));
  EXPECT_FALSE(looks(std::string(4096, '\0'), TokenType::kUint16, 50280));         // zeros are zeros in both
  EXPECT_FALSE(looks(packed<uint16_t>({9, 1, 9, 1}), TokenType::kUint16, 50280));  // too few to tell
  ids[33] = 4 << 16;                                                               // one exception
  EXPECT_FALSE(looks(packed<uint32_t>(ids), TokenType::kUint16, 50280));
  EXPECT_TRUE(looks(packed<uint16_t>({901, 2, 903, 4, 905, 6, 907, 8}), TokenType::kUint32, 50280));
  EXPECT_FALSE(looks(packed<uint32_t>({901, 2, 903, 4}), TokenType::kUint32, 50280));
  for (const char* file : {"u16-0", "u16-1", "u16-3", "u16-bos", "meta-u16", "part-000000", "part-000002", "part-000004"}) {
    const std::string bytes = test::slurp(std::string(DZ_GOLDEN "/data/tokens/") + file + ".npy");
    const bool wide = file[0] == 'p';
    EXPECT_FALSE(looks(bytes, wide ? TokenType::kUint32 : TokenType::kUint16, wide ? 100278 : 1000)) << file;
    EXPECT_TRUE(looks(bytes, wide ? TokenType::kUint16 : TokenType::kUint32, wide ? 65536 : 1000)) << file;
  }
}

TEST(TokenType, UnknownNamesListTheAllowedOnes) {
  for (const char* name : {"uint23", "", "int32", "UINT32", "uint8", "uint64"}) {
    const std::string message = message_of<DataError>([&] { parse_token_type(name, "dtype"); });
    EXPECT_NE(message.find("\"uint16\" or \"uint32\""), std::string::npos) << message;
  }
  EXPECT_EQ(parse_token_type("uint32", "dtype"), TokenType::kUint32);
}

}  // namespace
}  // namespace dz::data
