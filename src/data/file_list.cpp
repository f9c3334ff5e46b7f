#include "data/file_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace dz::data {

bool is_pattern(std::string_view path) { return path.find_first_of("*?[") != std::string_view::npos; }

std::vector<std::string> expand(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // Some released mixes name files that were never made public.
  const char* hint = path.find("0625") == std::string::npos ? "" : "not every file of OLMo-mix-0625 is available; a newer mix is";
  // A file may be called [x].npy.
  if (!is_pattern(path) || fs::is_regular_file(path, ignored)) {
    if (!fs::exists(path, ignored)) throw InputError(Complaint{.where = path, .found = "no such file", .expected = "", .hint = hint});
    return {path};
  }
  glob_t found{};
  const int code = ::glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    if (fs::is_regular_file(found.gl_pathv[i], ignored)) files.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  if (code != 0 && code != GLOB_NOMATCH) throw InputError(path + ": cannot list the files that match");
  if (files.empty()) throw InputError(Complaint{.where = path, .found = "no file that matches", .expected = "", .hint = hint});
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace dz::data
