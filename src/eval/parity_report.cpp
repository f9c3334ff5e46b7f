#include "eval/parity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dz::eval {
namespace {

constexpr size_t kMostShown = 8;  // mismatches of a text report; JSON has more

// A NaN is the worst of all.
template <class V, class Member>
const V* worst(const std::vector<V>& values, Member member) {
  const auto worse = [&](const V& a, const V& b) { return std::isnan(b.*member) ? !std::isnan(a.*member) : a.*member < b.*member; };
  const auto found = std::ranges::max_element(values, worse);
  return found == values.end() ? nullptr : &*found;
}

std::string statistics_line(const std::string& name, const model::ParityStats& stats) {
  return fmt::format("{:<14} {:>9} {:>9.2e} {:>9.2e} {:>9.2e} {:>9.2e} {:>6.2f}% {:>6.2f}% {:>6.2f}% {:>8}\n", name, stats.positions, stats.mean_kl,
                     stats.max_kl, stats.max_abs, stats.rms, 100 * stats.top1_agreement, 100 * stats.top5_overlap, 100 * stats.top10_overlap,
                     fmt::format("{:.3f}/{}", stats.mean_rank, stats.max_rank));
}

std::string hidden_line(const PairParity& pair, const PairParity* floor) {
  const HiddenError* most = worst(pair.hidden, &HiddenError::relative_rms);
  std::string line = fmt::format("{:<14} hidden states: largest error {:.2e} of the rms, after {}", pair.name, most->relative_rms, most->after);
  if (floor && !floor->hidden.empty()) line += fmt::format("; fp32 | bf16 {:.2e}", worst(floor->hidden, &HiddenError::relative_rms)->relative_rms);
  return line + "\n";
}

std::string mismatch_lines(const PairParity& pair) {
  std::string text;
  const std::vector<model::Top1Mismatch>& list = pair.logits->mismatches;
  for (size_t i = 0; i < std::min(kMostShown, list.size()); ++i) {
    const model::Top1Mismatch& one = list[i];
    text += fmt::format("{:<14} likeliest token differs at instance {}, position {}: {} (ahead by {:.2e}), ours {} (by {:.2e}){}\n", pair.name,
                        one.row / pair.seq, one.row % pair.seq, one.reference, one.reference_gap, one.ours, one.our_gap,
                        one.tie ? ", a tie" : ", NO TIE");
  }
  if (list.size() > kMostShown)
    text += fmt::format("{:<14} and at {} more positions\n", pair.name, pair.logits->top1_mismatches - int64_t{kMostShown});
  return text;
}

std::string details(const PairParity& pair, const PairParity* floor) {
  std::string text;
  if (pair.float64) {
    text += fmt::format("{:<14} rms distance from float64: ours {:.2e}", pair.name, pair.float64->ours);
    if (pair.float64->reference) {
      text += fmt::format(", the reference's {:.2e} (ratio {:.2f})", *pair.float64->reference, pair.float64->ours / *pair.float64->reference);
    }
    text += "\n";
  }
  if (pair.logsumexp_max_abs) text += fmt::format("{:<14} logsumexp: largest difference {:.2e}\n", pair.name, *pair.logsumexp_max_abs);
  if (pair.top1_agreement) text += fmt::format("{:<14} likeliest token agrees at {:.2f}%\n", pair.name, 100 * *pair.top1_agreement);
  if (pair.logits && pair.logits->targets > 0)
    text += fmt::format("{:<14} loss {:.6f}, ours {:.6f}\n", pair.name, pair.logits->reference_loss, pair.logits->loss);
  if (!pair.hidden.empty()) text += hidden_line(pair, floor);
  if (pair.logits) text += mismatch_lines(pair);
  return text;
}

}  // namespace

const PairParity* ParityReport::floor_of(const std::string& name) const {
  const auto found = std::ranges::find(floor, name, &PairParity::name);
  return found == floor.end() ? nullptr : &*found;
}

ParityLimits default_limits(const std::string& dtype) {
  // Two to three times what right programs show on the tiny golden models, transformers' own bf16 among them (docs/verbs/parity.md).
  if (dtype == "bf16") return {.mean_kl = 3e-3, .max_kl = 1.5e-2, .logsumexp = 0.2, .hidden = 5e-2, .gradient = 0.5};
  return {.mean_kl = 1e-7, .max_kl = 1e-6, .logsumexp = 6e-5, .hidden = 1e-5, .gradient = 2e-5};
}

std::vector<std::string> beyond_limits(const ParityReport& report) {
  std::vector<std::string> lines;
  const auto check = [&](const std::string& what, double value, double limit) {
    if (!(value <= limit)) lines.push_back(fmt::format("{}: {:.2e}, the limit is {:.2e}", what, value, limit));
  };
  for (const PairParity& pair : report.pairs) {
    if (pair.logits) {
      check(pair.name + ": mean KL", pair.logits->mean_kl, report.limits.mean_kl);
      check(pair.name + ": largest KL", pair.logits->max_kl, report.limits.max_kl);
      if (report.limits.max_abs) check(pair.name + ": largest difference of a logit", pair.logits->max_abs, *report.limits.max_abs);
    }
    if (pair.logsumexp_max_abs) check(pair.name + ": logsumexp", *pair.logsumexp_max_abs, report.limits.logsumexp);
    if (const HiddenError* most = worst(pair.hidden, &HiddenError::relative_rms))
      check(pair.name + ": hidden states after " + most->after, most->relative_rms, report.limits.hidden);
  }
  for (const GradientError& error : report.gradients) check("gradient of " + error.tensor, error.relative, report.limits.gradient);
  return lines;
}

std::string to_text(const ParityReport& report) {
  std::string text = fmt::format("reference  {}\nours       {}  {}\n", report.reference, report.model, report.dtype);
  text += fmt::format("{:<14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8}\n", "", "positions", "mean KL", "max KL", "max abs", "rms",
                      "top-1", "top-5", "top-10", "rank");
  for (const PairParity& pair : report.pairs) {
    if (pair.logits) text += statistics_line(pair.name, *pair.logits);
    const PairParity* floor = report.floor_of(pair.name);
    if (pair.logits && floor && floor->logits) text += statistics_line("  fp32 | bf16", *floor->logits);
  }
  for (const PairParity& pair : report.pairs) text += details(pair, report.floor_of(pair.name));
  if (const GradientError* most = worst(report.gradients, &GradientError::relative)) {
    text += fmt::format("{:<14} gradients: largest error {:.2e} of a tensor's largest gradient, in {}\n", report.gradients_of, most->relative,
                        most->tensor);
  }
  const std::vector<std::string> beyond = beyond_limits(report);
  for (const std::string& line : beyond) text += "DIFFERENT  " + line + "\n";
  if (beyond.empty()) {
    text += fmt::format("same       mean KL at most {:.1e} nats, at every position at most {:.1e}\n", report.limits.mean_kl, report.limits.max_kl);
  }
  return text;
}

}  // namespace dz::eval
