// Operations of forward and backward for a token, as different systems count them. A figure of one may only stand beside a figure of the same.
#pragma once

#include "model/config.h"

namespace dz::model {

struct FlopCounts {
  double useful = 0;           // flops_per_token: only pairs of query and key that are visible
  double maxtext = 0;          // every layer as if it were full, half of the square
  double maxtext_windows = 0;  // sliding layers: seq * window less half of the window's square
  double olmo_core = 0;        // 2.4.0: no layer saves anything, norms count
  double olmo_core_windows = 0;
};

// Of an instance of `seq` tokens. Sources: MaxText 0.2.5, utils/maxtext_utils.py; OLMo-core 2.4.0 and later, nn/transformer/model.py.
FlopCounts flop_counts(const ModelConfig& config, int64_t seq);

}  // namespace dz::model
