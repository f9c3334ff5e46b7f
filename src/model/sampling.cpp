#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "model/decode.h"
#include "numerics/functions64.h"
#include "numerics/philox.h"

namespace dz::model {
namespace {

int32_t argmax(std::span<const float> logits) { return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()); }

// Of equals at the edge all stay: no rule of order is better than another there.
void keep_top_k(std::vector<Candidate>& all, std::span<const float> logits, int64_t top_k) {
  size_t count = static_cast<size_t>(top_k);
  if (count == 0 || count >= all.size()) return;
  const auto logit = [&](size_t place) { return logits[static_cast<size_t>(all[place].token)]; };
  while (count < all.size() && logit(count) == logit(count - 1)) ++count;
  all.resize(count);
}

void keep_min_p(std::vector<Candidate>& all, double min_p) {
  const double least = min_p * all.front().probability;
  size_t count = 1;
  while (count < all.size() && all[count].probability >= least) ++count;
  all.resize(count);
}

// Cuts the tail that top-p leaves out. Sums run in order of the list: the same on every machine.
// 1 keeps all, also what is too small to move the sum.
void keep_top_p(std::vector<Candidate>& all, double top_p) {
  double total = 0;
  for (const Candidate& candidate : all) total += candidate.probability;
  double kept = 0;
  size_t count = 0;
  while (count < all.size() && (count == 0 || top_p >= 1.0 || kept < top_p * total)) kept += all[count++].probability;
  all.resize(count);
}

// Makes what is left a distribution again.
void normalise(std::vector<Candidate>& all) {
  double total = 0;
  for (const Candidate& candidate : all) total += candidate.probability;
  for (Candidate& candidate : all) candidate.probability /= total;
}

}  // namespace

void validate(const Sampling& sampling) {
  if (!(sampling.temperature >= 0.0 && std::isfinite(sampling.temperature))) {
    throw ConfigError(Complaint{"temperature", fmt::format("{}", sampling.temperature), "0 (the likeliest token) or more", ""});
  }
  if (!(sampling.top_p > 0.0 && sampling.top_p <= 1.0)) {
    throw ConfigError(Complaint{"top-p", fmt::format("{}", sampling.top_p), "above 0, at most 1", ""});
  }
  if (sampling.top_k < 0) throw ConfigError(Complaint{"top-k", fmt::format("{}", sampling.top_k), "0 (all tokens) or more", ""});
  if (!(sampling.min_p >= 0.0 && sampling.min_p <= 1.0))
    throw ConfigError(Complaint{"min-p", fmt::format("{}", sampling.min_p), "0 (all tokens) to 1", ""});
}

std::vector<Candidate> candidates(std::span<const float> logits, const Sampling& sampling) {
  DZ_CHECK(sampling.temperature > 0, "temperature", sampling.temperature);
  const double most = double{*std::ranges::max_element(logits)};
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double probability = numerics::exp((double{logits[i]} - most) / sampling.temperature);
    if (probability > 0.0) all.push_back({static_cast<int32_t>(i), probability});
  }
  // By logit, not by probability: two logits may differ where their exponentials do not. Of equals the higher token stays longer in top-p, as
  // in transformers, which sorts ascending and cuts from below.
  std::ranges::sort(all, std::greater{},
                    [&](const Candidate& candidate) { return std::pair(logits[static_cast<size_t>(candidate.token)], candidate.token); });
  keep_top_k(all, logits, sampling.top_k);
  keep_top_p(all, sampling.top_p);
  keep_min_p(all, sampling.min_p);
  normalise(all);
  return all;
}

int32_t choose(std::span<const float> logits, const Sampling& sampling, uint64_t index) {
  if (std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); })) {
    throw DataError(Complaint{"model", "NaN among its logits", "finite logits", "the weights are damaged or diverged"});
  }
  if (sampling.temperature == 0.0) return argmax(logits);
  const std::vector<Candidate> all = candidates(logits, sampling);
  const double u = numerics::RandomStream(sampling.seed, "sample").uniform(index);
  double below = 0;
  for (const Candidate& candidate : all) {
    below += candidate.probability;
    if (u < below) return candidate.token;
  }
  return all.back().token;  // the probabilities may add up to a little less than 1
}

}  // namespace dz::model
