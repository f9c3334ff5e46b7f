// Regular expressions of tokenizer.json, which are Oniguruma's, in the words of PCRE2. Only what both engines read alike is taken: the rest is
// refused by name. Character classes become explicit ranges of our Unicode 16 tables, so the version of the engine's own tables has no part in it.
#pragma once

#include <string>
#include <string_view>

namespace dz::text {

// Taken: literals; . and classes of literals, ranges, \s, \S, \p{L}, \p{N}, \P{..}, \p{^..}; \r \n \t \f \v \a \e, \xHH below 80, \x{H..}, \uHHHH;
// groups (..), (?:..), (?>..), (?i:..) of ASCII literals; look-ahead and look-behind; | * + ? {n,m} with lazy and possessive forms that mean the
// same. DataError with `where`, the part and its byte for anything else: other properties and classes, anchors, back references, flags, ...
std::string translate_regex(std::string_view pattern, const std::string& where);

}  // namespace dz::text
