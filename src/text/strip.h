// Python's str.strip(): what Dolma does to each document before it encodes it.
#pragma once

#include <string>

namespace dz::text {

// Removes the characters at both ends of which str.isspace() is true (Unicode's Zs and the bidirectional classes WS, B and S), in place.
void strip_like_python(std::string& text);

}  // namespace dz::text
