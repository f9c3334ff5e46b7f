// DZ_CHECK(condition, name, value, ...): an assertion for our own bugs that prints the values; it stays on in release builds.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace dz {

class BugError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

namespace detail {

inline void append_values(std::ostringstream&) {}

template <class Value, class... Rest>
void append_values(std::ostringstream& out, const char* name, const Value& value, const Rest&... rest) {
  if (out.tellp() > 0) out << ", ";
  out << name << " = " << value;
  append_values(out, rest...);
}

template <class... Args>
std::string format_values(const Args&... args) {
  std::ostringstream out;
  append_values(out, args...);
  return out.str();
}

}  // namespace detail
}  // namespace dz

#define DZ_CHECK(condition, ...)                                                                    \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::dz::check_failed(__FILE__, __LINE__, #condition, ::dz::detail::format_values(__VA_ARGS__)); \
  } while (false)
