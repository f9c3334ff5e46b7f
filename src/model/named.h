// The models of the OLMo family by name, and how the field counts their parameters and operations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace dz::model {

// The rows that OLMo-core gives the embedding: the dolma2 tokenizer's 100,278 tokens, padded to a multiple of 128. Every row takes part in the
// softmax, as in the reference; one that no text uses only ever loses probability.
inline constexpr int64_t kPaddedVocab = 100352;

// "olmo2_190M", "olmo3_7B", ...: the shape, theta 500,000, epsilon 1e-6, and for olmo3 a window of 4,096 with every fourth layer full. Nothing
// when there is no such model. Source: OLMo-core 2.4.0, nn/transformer/config.py; sizes that only its later versions name are taken from there.
std::optional<ModelConfig> named_model(std::string_view name);

// In rising size, olmo2 before olmo3.
std::vector<std::string> model_names();

// All but the input embedding; the head is counted.
int64_t num_non_embedding_params(const ModelConfig& config);

// Operations of forward and backward for a token as OLMo-core counts them, for comparing its logs: neither causality nor (by default) windows
// save anything. 2.4.0: 6 a non-embedding parameter, and 12 * n_heads * head_dim * seq a layer. Its later versions take min(window, seq) and leave
// out the norms of the blocks: `windows`. flops_per_token (model/config.h) is what this program reports.
double olmo_core_flops_per_token(const ModelConfig& config, int64_t seq, bool windows = false);

}  // namespace dz::model
