// Every relative link in a document leads to a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz {
namespace {

std::vector<std::string> broken_links(const fs::path& directory, const std::string& text) {
  static const std::regex kLink(R"(\]\(([^)#]+)(#[^)]*)?\))");
  std::vector<std::string> broken;
  for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
    const std::string target = (*it)[1];
    if (target.find("://") == std::string::npos && !fs::exists(directory / target)) broken.push_back(target);
  }
  return broken;
}

TEST(Docs, LinksLeadSomewhere) {
  const fs::path source = DZ_SOURCE;
  std::vector<fs::path> documents = {source / "README.md", source / "CONTRIBUTING.md", source / "CHANGELOG.md"};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / "docs"))
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  EXPECT_GT(documents.size(), 10u);
  for (const fs::path& document : documents)
    for (const std::string& link : broken_links(document.parent_path(), read_file(document))) ADD_FAILURE() << document << " links to " << link;
}

TEST(Docs, ABrokenLinkIsNoticed) {
  const std::string text = "[a](README.md) [b](README.md#part) [c](https://example.org/x) [d](no/such/file.md)";
  EXPECT_EQ(broken_links(DZ_SOURCE, text), std::vector<std::string>{"no/such/file.md"});
}

}  // namespace
}  // namespace dz
