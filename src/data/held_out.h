// Which documents are kept out of training: a property of their text, so that equal ones are on the same side whatever their source.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/token_shards.h"

namespace dz::data {

// A document is held out when this hash (XXH3-64 of its text under a fixed seed, upper 53 bits) is below share * 2^53.
uint64_t held_out_hash(std::string_view document);
bool is_held_out(uint64_t hash, double share);

struct DocumentPlace {
  std::string id;
  int64_t file = 0;
  int64_t line = 0;
};

// The documents of one source in, each with its split out. As long as the share has held out nothing, the document of lowest hash waits
// with its copies, and is held out at the end (unless the source has no other), so that the loss of a small source can be watched too.
class HeldOutChooser {
 public:
  using Ids = std::vector<int32_t>;
  using Write = std::function<void(Split, const Ids&, const DocumentPlace&)>;
  // Copies that wait at most; more are decided at once, so that memory stays bounded, and those that follow go with them.
  static constexpr size_t kMostCopies = size_t{1} << 16;

  HeldOutChooser(double share, Write write) : share_(share), write_(std::move(write)), waits_(share > 0) {}

  void add(uint64_t hash, const Ids& ids, DocumentPlace place);
  void end();

  // What a restart needs; the share and the receiver are given again.
  struct State {
    bool waits = false;
    int64_t seen = 0;
    uint64_t hash = 0;  // of the waiting one
    Ids ids;
    std::vector<DocumentPlace> copies;
    std::optional<std::pair<uint64_t, Split>> settled;
  };
  State state() const { return {waits_, seen_, hash_, ids_, copies_, settled_}; }
  void restore(State state);

 private:
  void release(Split split);

  double share_;
  Write write_;
  bool waits_;
  int64_t seen_ = 0;
  uint64_t hash_ = 0;
  Ids ids_;
  std::vector<DocumentPlace> copies_;
  std::optional<std::pair<uint64_t, Split>> settled_;
};

}  // namespace dz::data
