// Any bytes as a tokenizer.json: they may be refused, but not crash, hang or take memory that the file does not justify. What is read is used.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const dz::text::Tokenizer tokenizer = dz::text::Tokenizer::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
    constexpr std::string_view kText = "The  caf\u00E9's e\u0301 12345\r\n\n<|endoftext|> \xFF\xE2\x82 \u4E2D\u6587 [m] x";
    std::vector<int32_t> ids;
    std::vector<dz::text::Span> spans;
    dz::text::Encoder(tokenizer).encode(kText, dz::text::SpecialTokens::kParsed, ids, spans);
    if (ids.size() != spans.size()) std::abort();
    int64_t end = 0;
    for (const dz::text::Span& span : spans) {
      if (span.begin < end || span.end < span.begin || span.end > static_cast<int64_t>(kText.size())) std::abort();
      end = span.end;
    }
    if (ids != tokenizer.encode(kText)) std::abort();
    tokenizer.decode(ids);
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
