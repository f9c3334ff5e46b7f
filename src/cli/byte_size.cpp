#include "cli/byte_size.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "base/error.h"

namespace dz::cli {

int64_t parse_byte_size(const std::string& text, const std::string& option) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string number = text.substr(0, digits), unit = digits == std::string::npos ? "" : text.substr(digits);
  int64_t factor = 0, value = 0, decimal = 1, binary = 1;
  for (const char* prefix : {"", "K", "M", "G", "T"}) {
    const std::string name = prefix;
    if (unit == name + "B" || (unit.empty() && name.empty())) factor = decimal;
    if (!name.empty() && (unit == name || unit == name + "iB")) factor = binary;
    decimal *= 1000;
    binary *= 1024;
  }
  const bool readable = !number.empty() && number.size() <= 18 && factor > 0;
  if (readable) value = std::stoll(number);
  if (!readable || value == 0 || __builtin_mul_overflow(value, factor, &value))
    throw UsageError(
        Complaint{option, text, "a whole number with B, KB, MB, GB, TB, or K, M, G, T (powers of 1,024, also KiB to TiB), as in 5GB", ""});
  return value;
}

std::string binary_size(int64_t bytes) {
  auto value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

}  // namespace dz::cli
