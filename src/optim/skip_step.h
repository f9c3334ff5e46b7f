// Skip-step: an update is left out when the loss or the gradient norm stands out from the steps before it
// (olmo_core/optim/skip_step_optimizer.py), made proof against NaN and inf: a step whose loss or norm is not finite is always skipped, and
// neither of its values enters the window. On finite values the verdicts are OLMo-core's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dz::optim {

struct SkipStepSettings {
  bool enabled = true;        // false: only non-finite steps are skipped
  int64_t window = 128;       // steps of history; OLMo-core: rolling_interval_length
  float sigma = 6.0f;         // skip when a value is above the mean by more than this many standard deviations
  bool use_grad_norm = true;  // OLMo-core looks at the norm only when clipping is on
};

void check(const SkipStepSettings& settings, const std::string& where);  // ConfigError

struct SkipVerdict {
  bool skip = false;
  std::string reason;  // "loss is 7.2 sigma above the last 128", "gradient norm is nan"; empty when not skipped
};

class SkipStep {
 public:
  explicit SkipStep(const SkipStepSettings& settings);

  // Judges a step by its cross-entropy (without z-loss) and its gradient norm before clipping, and remembers the values if finite.
  // Protection begins when max(2, window / 2) values, the current one counted, are known; skipped finite values stay in the window.
  // mean and deviation (n - 1): sums in double over the window, oldest first; compared in f32.
  SkipVerdict judge(float loss, float grad_norm);

  // A step that there was nothing to judge by: it counts as skipped, and the window stays as it is.
  SkipVerdict pass_over(std::string reason);

  int64_t consecutive_skips() const { return consecutive_; }
  int64_t total_skips() const { return total_; }

  // The whole state as one JSON object, floats as hex, so that a resume goes on bit for bit.
  std::string to_json() const;
  void restore(std::string_view json, const std::string& where);  // CheckpointError; a longer window than the settings' keeps its newest part

 private:
  SkipStepSettings settings_;
  std::vector<float> losses_, norms_;  // oldest first, at most `window`
  int64_t consecutive_ = 0, total_ = 0;
};

}  // namespace dz::optim
