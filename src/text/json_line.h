// One line of a JSON-lines corpus. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace dz::text {

class JsonLineParser {
 public:
  struct Fields {
    std::string field = "text";   // "a.b" is b inside a, unless there is a key of that very name
    std::string id_field = "id";  // spelled likewise; may be missing in a line
    std::string hint = "name another field with --field";
  };
  explicit JsonLineParser(Fields fields);
  ~JsonLineParser();

  // The string under `field` of the object in `line`, and what stands under `id_field`: a string as it is, null and nothing as "", anything
  // else as JSON. Ill-formed UTF-8 and escapes of half surrogate pairs become U+FFFD; `replaced` counts them. DataError naming `where`
  // when the line is no JSON object or the field is missing or no string.
  void parse(std::string line, const std::string& where, std::string& text, std::string& id, int64_t& replaced);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dz::text
