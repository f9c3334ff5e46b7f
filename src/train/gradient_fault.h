// A gradient broken on purpose, so that tests can show what a step does with it (docs/optimizer.md, "Faults on purpose").
//   DZ_FAULT=grad:NAME[i,j]=nan@20     one element of one tensor, at step 20
//   DZ_FAULT=grad:NAME=inf@20-25       every element of one tensor, at steps 20 to 25
//   DZ_FAULT=grad:*=x64@20             every element of every tensor, times 64
// The values: nan, inf, -inf, or x and a finite factor. It acts on the reduced gradient, before its norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parameters.h"

namespace dz::train {

struct GradientFault {
  std::string text;            // as it was given
  std::string tensor;          // Hugging Face name; "*": every tensor
  std::vector<int64_t> index;  // empty: every element
  bool multiply = false;
  float value = 0;
  int64_t first = 0, last = 0;  // steps

  bool strikes(int64_t step) const { return first <= step && step <= last; }
  void apply(model::Parameters& gradient) const;
};

// Nothing for an empty text. UsageError naming DZ_FAULT: another form, a tensor or element that the model does not have, steps below 1.
std::optional<GradientFault> parse_gradient_fault(const std::string& text, const model::ModelConfig& model);
// Of the environment variable DZ_FAULT.
std::optional<GradientFault> gradient_fault_of_environment(const model::ModelConfig& model);

}  // namespace dz::train
