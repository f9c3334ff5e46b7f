// Fields of a loader state, each refused by name. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader_state.h"

namespace dz::data {

class StateJson {
 public:
  explicit StateJson(const LoaderStateText& text);  // DataError when the text is no JSON object, or is larger than a state can be
  ~StateJson();

  // DataError when the key is missing or holds something else.
  int64_t integer(const std::string& key) const;
  uint64_t natural(const std::string& key) const;
  std::string text(const std::string& key) const;
  bool is_null(const std::string& key) const;
  // The integers of an object whose keys are "0", "1" ...
  std::vector<int64_t> numbered(const std::string& key) const;

  // The state cannot be right in itself.
  [[noreturn]] void refuse(const std::string& key, const std::string& found, const std::string& expected) const;
  // It is sound, but of another run.
  [[noreturn]] void refuse_run(const std::string& key, const std::string& found, const std::string& expected, const std::string& hint = "") const;
  // refuse_run unless both are the same.
  void require_same(const std::string& key, const std::string& found, const std::string& expected, const std::string& hint = "") const;

 private:
  struct Fields;
  std::string where_;
  std::unique_ptr<Fields> fields_;
};

}  // namespace dz::data
