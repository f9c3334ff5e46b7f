// The recipe of the sizes that speed is measured on, as the comparison scripts of other systems have it.
#pragma once

#include <string>
#include <vector>

#include "model/bench_sizes.h"
#include "train/recipe.h"

namespace dz::cli {

// The size called `name` with changes "d_model=512", of d_model, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab, seq_len, window (0: every
// layer full), tokens_per_step, micro_batch. UsageError for another key or a number that is none, ConfigError for a model that cannot be.
model::BenchSize changed_size(const std::string& name, const std::vector<std::string>& changes);

train::Recipe bench_recipe(const model::BenchSize& size, const std::string& dtype);

}  // namespace dz::cli
