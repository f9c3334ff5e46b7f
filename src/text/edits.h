// Where the bytes of a changed text came from: offsets are told in bytes of the input, whatever normalisation did to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dz::text {

class Edits {
 public:
  void clear() { parts_.clear(); }
  bool empty() const { return parts_.empty(); }

  // [begin, begin + size) of the new text stands for [old_begin, old_begin + old_size) of the old one; ascending. Between two edits both
  // texts are the same.
  void add(size_t begin, size_t size, size_t old_begin, size_t old_size) { parts_.push_back({begin, begin + size, old_begin, old_begin + old_size}); }

  // The place in the old text. Inside of an edit it is the edit's end: the first token there gets all of it, others get nothing.
  size_t origin(size_t position) const {
    const auto after = std::partition_point(parts_.begin(), parts_.end(), [&](const Part& part) { return part.begin < position; });
    if (after == parts_.begin()) return position;
    const Part& part = *std::prev(after);
    return position < part.end ? part.old_end : part.old_end + (position - part.end);
  }

 private:
  struct Part {
    size_t begin, end, old_begin, old_end;
  };
  std::vector<Part> parts_;
};

// False, with nothing written, when `text` is UTF-8. Else `out` has U+FFFD for each maximal ill-formed part, and `edits` says where.
bool replace_invalid_utf8(std::string_view text, std::string& out, Edits& edits);

}  // namespace dz::text
