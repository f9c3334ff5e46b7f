// Files of ids, one sequence a line.
#include "text/id_lines.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/files.h"

namespace dz::text {
namespace {

using Ids = std::vector<int32_t>;

std::string complaint_about(const std::string& line) {
  try {
    parse_ids(line, "ids.txt:7");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(IdLines, NumbersOrWhatEncodePrints) {
  EXPECT_EQ(parse_ids("1 2,3, 4\t5\r", "x"), (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(parse_ids(" {\"ids\": [0, 2147483647], \"offsets\": []}", "x"), (Ids{0, 2147483647}));
  EXPECT_EQ(parse_ids(" , ", "x"), Ids{});
}

TEST(IdLines, WhatIsNoIdIsRefusedWithItsPlace) {
  for (const char* wrong : {"2147483648", "-1", "1.5", "0x10", "a", "1;2", "+3", "99999999999999999999"}) {
    const std::string message = complaint_about(std::string("5 ") + wrong);
    EXPECT_NE(message.find("ids.txt:7: id 1"), std::string::npos) << wrong << ": " << message;
  }
  for (const char* wrong : {"{\"ids\": [1, -2]}", "{\"ids\": [1, 2.0]}"})
    EXPECT_NE(complaint_about(wrong).find("ids.txt:7: ids[1]"), std::string::npos) << wrong;
  for (const char* wrong : {"{\"ids\": 1}", "{\"id\": [1]}", "{\"ids\": [1]", "[1, 2]"}) EXPECT_NE(complaint_about(wrong), "") << wrong;
}

TEST(IdLines, ASequenceForEachLineThatIsNotBlank) {
  const TestFolder folder;
  const fs::path file = folder.write("ids.txt", "1 2 3\n\n4\r\n{\"ids\": [5, 6]}\n7");
  EXPECT_EQ(read_id_lines(file), (std::vector<Ids>{{1, 2, 3}, {4}, {5, 6}, {7}}));
  EXPECT_TRUE(read_id_lines(folder.write("empty.txt", "")).empty());
  EXPECT_THROW(read_id_lines(folder.path() / "missing.txt"), InputError);
  EXPECT_THROW(read_id_lines(folder.path()), InputError) << "a directory";
}

}  // namespace
}  // namespace dz::text
