// Unicode normalisation form C as the `tokenizers` library has it: that of Unicode 9. Code points that came later are left alone there, and so
// here, whatever version the library behind this (utf8proc) knows; what Unicode 9 knew never changes (its stability policy).
#pragma once

#include <string>
#include <string_view>

#include "text/edits.h"

namespace dz::text {

// False, with nothing written, when `text` is in form C already. Else `out` is the normalised text and `edits` says where it differs.
// Ill-formed parts stay as they are. Linear, but for the sort of a run of combining marks.
bool normalize_nfc(std::string_view text, std::string& out, Edits& edits);

}  // namespace dz::text
