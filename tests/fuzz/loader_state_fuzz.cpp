// Feeds damaged loader states of OLMo-core and Grain to their readers: they may refuse the bytes, but not crash, hang or take memory that they
// do not justify, and a step that they give must begin where the state says. LLVMFuzzerTestOneInput is the entry that libFuzzer calls.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/loader_state.h"
#include "fuzz/fuzz.h"

namespace {

using namespace dz::data;

LoaderIdentity identity_of_goldens() {
  LoaderIdentity identity;
  identity.sequence_length = 8;
  identity.dtype = "uint16";
  identity.fingerprint = "sha256:3185645696655c05a978709392ab8e075b5c686c9cf3317a00f49a490cec67ff";
  identity.check_fingerprint = false;
  return identity;
}

void check(const LoaderPosition& position, const Order& order) {
  if (position.step < 1 || position.batches < 0 || order.epoch(position.step) != position.epoch) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const LoaderIdentity identity = identity_of_goldens();
  static const auto olmo_core = make_order({.dialect = Dialect::kOlmoCore, .instances = 25, .batch = 4, .seed = 34521});
  static const std::vector<std::shared_ptr<const Order>> maxtext = {
      make_order({.dialect = Dialect::kMaxText, .instances = 25, .batch = 4, .seed = 42}),
      make_order({.dialect = Dialect::kMaxText, .instances = 25, .batch = 4, .seed = 42, .workers = 2}),
      make_order({.dialect = Dialect::kMaxText, .instances = 25, .batch = 4, .seed = 42, .workers = 4})};
  const LoaderStateText text{"state.json", std::string(reinterpret_cast<const char*>(data), size)};
  try {
    check(olmo_core_position(text, *olmo_core, identity), *olmo_core);
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  for (const auto& order : maxtext) {
    try {
      check(grain_position({&text, 1}, *order, identity), *order);
    } catch (const dz::Error&) {
    }
  }
  return 0;
}
