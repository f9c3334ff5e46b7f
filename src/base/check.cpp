#include "base/check.h"

#include <cstring>

namespace dz {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  const char* inside = std::strstr(file, "src/");
  std::string message = std::string("DZ_CHECK failed at ") + (inside ? inside + 4 : file) + ":" + std::to_string(line) + ": " + condition;
  if (!values.empty()) message += " (" + values + ")";
  throw BugError(message + "; please report this with the command line above");
}

}  // namespace dz
