// Where the tokens of a recipe come from: shards, bare files, a mix of AI2 or a mixture of sources.
#pragma once

#include "train/training_data.h"

namespace dz::train {

// Fills shards, store, tokenizer_json and notes; for a mixture by samples also the data set. Not for generated tokens.
void open_tokens(const Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool, TrainingData& data);

}  // namespace dz::train
