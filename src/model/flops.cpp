#include "model/flops.h"

#include <algorithm>

#include "model/named.h"

namespace dz::model {

FlopCounts flop_counts(const ModelConfig& config, int64_t seq) {
  const auto length = static_cast<double>(seq);
  double full = 0, windows = 0;  // pairs of an instance, over layers
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const int64_t window = config.window_of(layer);
    const auto reach = static_cast<double>(window == 0 ? seq : std::min(window, seq));
    full += length * length / 2;
    windows += length * reach - reach * reach / 2;
  }
  const double useful = flops_per_token(config, seq), per_pair = 12.0 * static_cast<double>(config.q_width());
  // What flops_per_token counts without attention.
  ModelConfig linear = config;
  linear.window = 0;
  for (LayerKind& kind : linear.layers) kind = LayerKind::kFull;
  const double all_pairs = static_cast<double>(config.n_layers) * length * (length + 1) / 2;
  const double products = flops_per_token(linear, seq) - per_pair * all_pairs / length;
  return {.useful = useful,
          .maxtext = products + per_pair * full / length,
          .maxtext_windows = products + per_pair * windows / length,
          .olmo_core = olmo_core_flops_per_token(config, seq),
          .olmo_core_windows = olmo_core_flops_per_token(config, seq, true)};
}

}  // namespace dz::model
