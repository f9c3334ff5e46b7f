// The printable spelling of bytes in byte-level vocabularies: '!'..'~', U+00A1..U+00AC and U+00AE..U+00FF stand for themselves,
// the other 68 bytes in ascending order are U+0100, U+0101, ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dz::text {

uint32_t char_of_byte(unsigned char byte);
std::string spell_bytes(std::string_view bytes);

// The bytes that a token's spelling stands for; nothing when a character is none of the 256.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace dz::text
