// The tables of cosines and sines of a model: one, or two where YaRN stretches only some layers.
#pragma once

#include <optional>
#include <vector>

#include "model/config.h"
#include "numerics/rope.h"

namespace dz::model {

class RopeTables {
 public:
  RopeTables(const ModelConfig& config, int64_t positions);
  // cos and sin: [positions, head_dim / 2].
  const numerics::RopeTable& of(int64_t layer) const { return tables_[which_[static_cast<size_t>(layer)]]; }

 private:
  std::vector<numerics::RopeTable> tables_;
  std::vector<size_t> which_;  // of tables_, a layer
};

}  // namespace dz::model
