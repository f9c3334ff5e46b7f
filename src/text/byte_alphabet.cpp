#include "text/byte_alphabet.h"

#include <array>

#include "text/unicode.h"

namespace dz::text {
namespace {

constexpr uint32_t kFirstMoved = 0x100;
constexpr uint32_t kMoved = 68;

constexpr bool stands_for_itself(uint32_t byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD); }

struct Alphabet {
  std::array<uint32_t, 256> char_of{};
  std::array<int16_t, kFirstMoved + kMoved> byte_of{};

  constexpr Alphabet() {
    byte_of.fill(-1);
    uint32_t next = kFirstMoved;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t c = stands_for_itself(byte) ? byte : next++;
      char_of[byte] = c;
      byte_of[c] = static_cast<int16_t>(byte);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

uint32_t char_of_byte(unsigned char byte) { return kAlphabet.char_of[byte]; }

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) append_utf8(char_of_byte(static_cast<unsigned char>(byte)), spelling);
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (size_t i = 0; i < spelling.size();) {
    const CodePoint c = decode_utf8(spelling, i);
    if (c.value >= kAlphabet.byte_of.size() || kAlphabet.byte_of[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte_of[c.value]);
    i += c.size;
  }
  return bytes;
}

}  // namespace dz::text
