// The arrow rule: a room may include only itself and the rooms that CMakeLists.txt gives it, all of them further left,
// and headers stay free of third-party headers. CMakeLists.txt is the one statement of the order; this test reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz {
namespace {

using Rooms = std::map<std::string, std::set<std::string>>;  // room -> the rooms it may include

struct Order {
  Rooms allowed;
  std::vector<std::string> problems;
};

// Reads the dz_room(...) and dz_kernels(...) lines in their order; a room that is used before its own line is a problem.
Order read_order(const std::string& cmake) {
  Order order;
  std::istringstream lines(cmake);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    static const std::regex kRoom(R"(^dz_(room|kernels)\(([^)]*)\))");
    if (!std::regex_search(line, match, kRoom)) continue;
    std::istringstream words(match[2].str());
    std::string name = "kernels";
    if (match[1] == "room") words >> name;
    std::set<std::string> uses{name};
    bool in_rooms = false;
    for (std::string word; words >> word;) {
      if (word == "ROOMS" || word == "LIBRARIES") {
        in_rooms = word == "ROOMS";
      } else if (in_rooms) {
        if (!order.allowed.contains(word)) order.problems.push_back(name + " uses " + word + ", which is not further left");
        uses.insert(word);
      }
    }
    order.allowed[name] = uses;
  }
  return order;
}

std::vector<std::string> broken_includes(const Rooms& allowed, const std::string& room, bool is_header, const std::string& text) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  static const std::regex kThirdParty(
      R"(^(CLI|fmt|spdlog|yaml-cpp|nlohmann|gtest|openssl|benchmark)/|^(simdjson|xxhash|zstd|zlib|pcre2|utf8proc)\.h$)");
  std::vector<std::string> problems;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, kInclude)) continue;
    const std::string path = match[2];
    if (match[1] == "<") {
      if (is_header && std::regex_search(path, kThirdParty)) problems.push_back("third-party header " + path + " in a header");
      continue;
    }
    const std::string target = path.substr(0, path.find('/'));
    if (!allowed.contains(target)) {
      problems.push_back("\"" + path + "\" does not start with a room");
    } else if (!allowed.at(room).contains(target)) {
      problems.push_back(room + " may not include " + path);
    }
  }
  return problems;
}

Order repository_order() { return read_order(read_file(fs::path(DZ_SOURCE) / "CMakeLists.txt")); }

TEST(Rooms, OrderIsStatedAndPointsLeft) {
  const Order order = repository_order();
  EXPECT_GE(order.allowed.size(), 12u);
  for (const std::string& problem : order.problems) ADD_FAILURE() << problem;
}

TEST(Rooms, IncludesObeyTheOrder) {
  const Order order = repository_order();
  const fs::path source = fs::path(DZ_SOURCE) / "src";
  int64_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source)) {
    const fs::path relative = fs::relative(entry.path(), source);
    const std::string extension = relative.extension();
    if ((extension != ".h" && extension != ".cpp") || !relative.has_parent_path()) continue;
    const std::string room = relative.begin()->string();
    ASSERT_TRUE(order.allowed.contains(room)) << relative << " is in a directory that CMakeLists.txt does not name as a room";
    ++files;
    for (const std::string& problem : broken_includes(order.allowed, room, extension == ".h", read_file(entry.path())))
      ADD_FAILURE() << relative << ": " << problem;
  }
  EXPECT_GT(files, 20);
}

TEST(Rooms, AForbiddenArrowIsNoticed) {
  const Order order = read_order("dz_room(base)\ndz_kernels(ROOMS base)\ndz_room(train ROOMS base kernels LIBRARIES yaml-cpp)\n");
  ASSERT_TRUE(order.problems.empty());
  EXPECT_TRUE(broken_includes(order.allowed, "train", false, "#include \"kernels/gemm.h\"\n#include <yaml-cpp/yaml.h>\n").empty());
  EXPECT_EQ(broken_includes(order.allowed, "kernels", false, "#include \"train/step.h\"\n").size(), 1u);
  EXPECT_EQ(broken_includes(order.allowed, "train", true, "#include <yaml-cpp/yaml.h>\n").size(), 1u);
  EXPECT_EQ(broken_includes(order.allowed, "base", false, "#include \"file.h\"\n").size(), 1u);
  EXPECT_EQ(read_order("dz_room(base ROOMS train)\ndz_room(train)\n").problems.size(), 1u);
}

}  // namespace
}  // namespace dz
