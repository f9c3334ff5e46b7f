// The verdict on a parity run and what a person or a program is told of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/parity.h"

namespace dz::eval {

// What still counts as the same. Two right programs differ by rounding; a mistake moves far more (docs/verbs/parity.md has the measurements).
struct ParityLimits {
  double mean_kl = 0, max_kl = 0;  // nats
  double logsumexp = 0;            // absolute
  double hidden = 0;               // relative rms of a hidden state
  double gradient = 0;             // of a tensor, relative to its largest
  std::optional<double> max_abs;   // of a logit; not checked unless given: it grows with the logits
};

// The limits for our side's compute type, "fp32" or "bf16".
ParityLimits default_limits(const std::string& dtype);

struct ParityReport {
  std::string reference, model, dtype;
  int64_t columns = 0;  // that are compared, of a row of logits
  ParityLimits limits;
  std::vector<PairParity> pairs;
  std::vector<PairParity> floor;  // the noise floor: the reference's float32 against its own bf16, by the same names; may be empty
  std::vector<GradientError> gradients;
  std::string gradients_of;  // the pair whose ids they belong to

  const PairParity* floor_of(const std::string& name) const;  // null when there is none
};

// One line for each limit that is passed, naming pair and value; a NaN passes every limit.
std::vector<std::string> beyond_limits(const ParityReport& report);

std::string to_text(const ParityReport& report);
std::string to_json(const ParityReport& report);

}  // namespace dz::eval
