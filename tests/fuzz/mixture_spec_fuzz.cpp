// Any bytes as the file of a mixture: refused with a reason, or a mixture of as many instances as its steps need.
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/source_mixture.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const dz::data::MixtureSpec spec = dz::data::parse_mixture_spec(std::string(reinterpret_cast<const char*>(data), size), "mixture", "/dev");
    dz::data::FileTokens tokens;
    for (const dz::data::MixtureSource& source : spec.sources) tokens.emplace_back(source.paths.size(), 100);
    int64_t instances = 0;
    for (const dz::data::SampledSource& source : dz::data::allocate_sampled(spec, tokens)) instances += source.instances;
    if (instances != dz::data::needed_instances(spec)) std::abort();
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
