// Any bytes as the file of a mixture: refused with a reason, or a specification whose numbers hold together.
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/source_mixture.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const dz::data::MixtureSpec spec = dz::data::parse_mixture_spec(std::string(reinterpret_cast<const char*>(data), size), "mixture", "/dev");
    if (spec.sources.empty() || spec.requested_tokens < 1 || spec.sequence_length < 1 || dz::data::needed_instances(spec) < 1) std::abort();
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
