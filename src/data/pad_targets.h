// Targets that are padding. OLMo-core counts a pad token of its data as any other target; MaxText, says the report of its OLMo 3 reproduction,
// gives it no weight, so the losses of the two differ where the data holds pads (recipe.loss.mask_padding). What packing and padding to a
// length fill up is no target in either.
#pragma once

#include <cstdint>

#include "data/loader.h"

namespace dz::data {

// Takes every target that is `pad_id` out of the loss and counts anew. Tokens and the digest of the batch stay.
void mask_pad_targets(Batch& batch, int32_t pad_id);

}  // namespace dz::data
