#include "data/held_out.h"

#include <span>

#include "base/hash.h"

namespace dz::data {
namespace {

// Own to this choice, so that nothing else that hashes documents picks the same ones.
constexpr uint64_t kHeldOutSeed = 0x68656C646F757401;

}  // namespace

uint64_t held_out_hash(std::string_view document) { return xxh3_64(std::as_bytes(std::span(document.data(), document.size())), kHeldOutSeed) >> 11; }

bool is_held_out(uint64_t hash, double share) {
  constexpr double kScale = 9007199254740992.0;  // 2^53
  return hash < static_cast<uint64_t>(share * kScale);
}

void HeldOutChooser::release(Split split) {
  for (const DocumentPlace& place : copies_) write_(split, ids_, place);
  copies_.clear();
  ids_.clear();
}

void HeldOutChooser::add(uint64_t hash, const Ids& ids, DocumentPlace place) {
  ++seen_;
  if (is_held_out(hash, share_)) {
    waits_ = false;
    release(Split::kTrain);
    write_(Split::kHeldOut, ids, place);
    return;
  }
  if (settled_ && hash == settled_->first) {
    write_(settled_->second, ids, place);
    return;
  }
  if (!waits_ || (!copies_.empty() && hash > hash_)) {
    write_(Split::kTrain, ids, place);
    return;
  }
  if (hash != hash_) release(Split::kTrain);
  if (copies_.empty()) ids_ = ids;
  hash_ = hash;
  copies_.push_back(std::move(place));
  if (copies_.size() < kMostCopies) return;
  const bool only_copies = static_cast<int64_t>(copies_.size()) == seen_;
  settled_ = {hash, only_copies ? Split::kTrain : Split::kHeldOut};
  waits_ = only_copies;
  release(settled_->second);
}

void HeldOutChooser::end() {
  const bool others = static_cast<int64_t>(copies_.size()) < seen_;
  release(waits_ && others ? Split::kHeldOut : Split::kTrain);
}

void HeldOutChooser::restore(State state) {
  waits_ = state.waits;
  seen_ = state.seen;
  hash_ = state.hash;
  ids_ = std::move(state.ids);
  copies_ = std::move(state.copies);
  settled_ = state.settled;
}

}  // namespace dz::data
