// The command line as people meet it: every verb's --help fits one screen, and has a page in docs/verbs that knows every option.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz {
namespace {

std::string output_of(const std::string& arguments) {
  const std::string command = std::string("'") + DZ_BINARY + "' " + arguments + " 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe.get())) text.append(buffer.data(), size);
  return text;
}

// The names in the last section of a --help, "Subcommands:".
std::vector<std::string> verbs_of(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:"))));
  static const std::regex kVerb(R"(^  ([a-z-]+) )");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kVerb)) verbs.push_back(match[1]);
  }
  return verbs;
}

std::vector<std::string> missing_options(const std::string& help, const std::string& page) {
  static const std::regex kOption(R"(--[a-z][a-z-]*)");
  std::vector<std::string> missing;
  for (std::sregex_iterator it(help.begin(), help.end(), kOption), end; it != end; ++it) {
    const std::string option = it->str();
    if (option != "--help" && page.find(option) == std::string::npos) missing.push_back(option);
  }
  return missing;
}

TEST(Help, FitsOneScreenAndIsDocumented) {
  const std::string all = output_of("--help");
  const std::vector<std::string> verbs = verbs_of(all);
  EXPECT_GE(verbs.size(), 2u) << all;
  EXPECT_LE(std::count(all.begin(), all.end(), '\n'), 40);
  for (const std::string& verb : verbs) {
    const fs::path page = fs::path(DZ_SOURCE) / "docs" / "verbs" / (verb + ".md");
    ASSERT_TRUE(fs::exists(page)) << page;
    std::vector<std::string> screens = {output_of(verb + " --help")};
    for (const std::string& inner : verbs_of(screens[0])) screens.push_back(output_of(verb + " " + inner + " --help"));
    for (const std::string& help : screens) {
      EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 40) << verb << "\n" << help;
      for (const std::string& option : missing_options(help, read_file(page))) ADD_FAILURE() << page << " does not mention " << option;
    }
  }
}

TEST(Help, AMissingOptionIsNoticed) {
  EXPECT_EQ(missing_options("  --json  one object\n  --dir RUN\n  -h,--help", "`--json`"), std::vector<std::string>{"--dir"});
}

}  // namespace
}  // namespace dz
