// AdamW over named tensors in the operation order of OLMo-core (docs/numerics.md, "AdamW"; olmo_core/optim/adamw.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dz {
class ThreadPool;
}

namespace dz::optim {

// OLMo-core's two updates. They differ in how the moments are rounded; its recipes run foreach.
enum class AdamWForm : uint8_t { kForeach, kSingle };

struct AdamWSettings {
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  // Tensors without decay, by name; * and ? are wild cards. OLMo 3 exempts the embedding only: norm weights and the head decay.
  std::vector<std::string> no_decay = {"model.embed_tokens.weight"};
  AdamWForm form = AdamWForm::kForeach;
};

void check(const AdamWSettings& settings, const std::string& where);  // ConfigError

// One tensor of the model with its moments, all f32 of `count` elements.
struct OptimizedTensor {
  std::string name;
  int64_t count = 0;
  const float* gradient = nullptr;
  float* value = nullptr;
  float* exp_avg = nullptr;
  float* exp_avg_sq = nullptr;
};

// The decay of each tensor. ConfigError when a pattern of `no_decay` matches no name: it would be a silent typing error.
std::vector<double> decay_table(const AdamWSettings& settings, std::span<const std::string> names, const std::string& where);

// f32 factors of one update; adam_step counts the updates done before it.
struct AdamWFactors {
  float m_keep, m_take, v_keep, v_take;  // 1 - float(1 - beta), float(1 - beta)
  float sqrt_bc2;                        // sqrt(1 - beta2^(adam_step + 1))
  float step;                            // -((1 / bc1) * float(lr))
};
AdamWFactors adamw_factors(const AdamWSettings& settings, double lr, int64_t adam_step);
// 1 - beta^exponent: float(beta) to the power in double by squaring, one rounding to f32, one subtraction.
float bias_correction(double beta, int64_t exponent);

// One update of all tensors; `decays` from decay_table, `clip` multiplies every gradient first. Not to be called for a skipped step: then
// weights, moments and adam_step stay as they are.
void adamw_update(const AdamWSettings& settings, std::span<const OptimizedTensor> tensors, std::span<const double> decays, double lr, float clip,
                  int64_t adam_step, ThreadPool& pool);

}  // namespace dz::optim
