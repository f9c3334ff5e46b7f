// Which files a person means: a name, a pattern, a directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dz::data {

bool is_pattern(std::string_view path);  // has * ? or [
// The files that a pattern matches (glob(7); a directory is none), or the path itself; in the order of their bytes. InputError when there are
// none or the path does not exist.
std::vector<std::string> expand(const std::string& path);

}  // namespace dz::data
