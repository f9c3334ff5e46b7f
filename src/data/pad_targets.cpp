#include "data/pad_targets.h"

namespace dz::data {

void mask_pad_targets(Batch& batch, int32_t pad_id) {
  const auto length = static_cast<size_t>(batch.sequence_length);
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] != pad_id || pad_id == kNoTarget) continue;
    batch.targets[i] = kNoTarget;
    --batch.row_labels[i / length];
    --batch.labels;
  }
}

}  // namespace dz::data
