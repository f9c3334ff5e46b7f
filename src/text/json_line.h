// One line of a JSON-lines corpus. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dz::text {

class JsonLineParser {
 public:
  explicit JsonLineParser(std::string field);
  ~JsonLineParser();

  // The string under the field of the object in `line`. Ill-formed UTF-8 and escapes of half surrogate pairs become U+FFFD; `replaced`
  // counts them. DataError naming `where` when the line is no JSON object or the field is missing or no string.
  std::string text(std::string line, const std::string& where, int64_t& replaced);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dz::text
