#include "text/edits.h"

#include "text/unicode.h"

namespace dz::text {

bool replace_invalid_utf8(std::string_view text, std::string& out, Edits& edits) {
  if (is_valid_utf8(text)) return false;
  out.clear();
  edits.clear();
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (c.value == kInvalid) {
      edits.add(out.size(), 3, i, c.size);
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text, i, c.size);
    }
    i += c.size;
  }
  return true;
}

}  // namespace dz::text
