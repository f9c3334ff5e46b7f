#include "model/rope_tables.h"

#include <array>

namespace dz::model {

RopeTables::RopeTables(const ModelConfig& config, int64_t positions) {
  std::array<std::optional<size_t>, 2> made;  // without YaRN, with it
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const numerics::RopeShape shape = config.rope_of(layer);
    std::optional<size_t>& table = made[shape.yarn ? 1 : 0];
    if (!table) {
      table = tables_.size();
      tables_.push_back(numerics::make_rope_table(shape, positions, config.rope_table));
    }
    which_.push_back(*table);
  }
}

}  // namespace dz::model
