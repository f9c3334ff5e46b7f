#include "optim/adamw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "kernels/state.h"

namespace dz::optim {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& key, const std::string& found, const std::string& expected,
                         const std::string& hint = "") {
  throw ConfigError(Complaint{.where = where + "." + key, .found = found, .expected = expected, .hint = hint});
}

// Shell wild cards: ? is any character, * any run of them. On a mismatch the last * takes one character more.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

void check(const AdamWSettings& settings, const std::string& where) {
  const auto is_beta = [](double x) { return x >= 0 && static_cast<float>(x) < 1.0f; };
  if (!is_beta(settings.beta1) || !is_beta(settings.beta2)) {
    refuse(where, "betas", fmt::format("[{}, {}]", settings.beta1, settings.beta2), "two numbers in [0, 1)", "for OLMo 3 use [0.9, 0.95]");
  }
  if (!(settings.eps >= 0) || !std::isfinite(settings.eps)) refuse(where, "eps", fmt::format("{}", settings.eps), "0 or more");
  if (!(settings.weight_decay >= 0) || !std::isfinite(settings.weight_decay))
    refuse(where, "weight_decay", fmt::format("{}", settings.weight_decay), "0 or more");
}

std::vector<double> decay_table(const AdamWSettings& settings, std::span<const std::string> names, const std::string& where) {
  std::vector<double> decays(names.size(), settings.weight_decay);
  for (const std::string& pattern : settings.no_decay) {
    bool used = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!matches(pattern, names[i])) continue;
      decays[i] = 0;
      used = true;
    }
    if (!used) refuse(where, "no_decay", pattern, "a name or pattern of the model's tensors", names.empty() ? "" : "such as " + names.front());
  }
  return decays;
}

float bias_correction(double beta, int64_t exponent) {
  DZ_CHECK(exponent >= 0, "exponent", exponent);
  double power = 1, square = static_cast<float>(beta);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) power *= square;
    square *= square;
  }
  return 1.0f - static_cast<float>(power);
}

AdamWFactors adamw_factors(const AdamWSettings& settings, double lr, int64_t adam_step) {
  const auto m_take = static_cast<float>(1 - settings.beta1), v_take = static_cast<float>(1 - settings.beta2);
  const float bc1 = bias_correction(settings.beta1, adam_step + 1), bc2 = bias_correction(settings.beta2, adam_step + 1);
  return {.m_keep = 1.0f - m_take,
          .m_take = m_take,
          .v_keep = 1.0f - v_take,
          .v_take = v_take,
          .sqrt_bc2 = __builtin_sqrtf(bc2),
          .step = -((1.0f / bc1) * static_cast<float>(lr))};
}

void adamw_update(const AdamWSettings& settings, std::span<const OptimizedTensor> tensors, std::span<const double> decays, double lr, float clip,
                  int64_t adam_step, ThreadPool& pool) {
  DZ_CHECK(tensors.size() == decays.size(), "tensors", tensors.size(), "decays", decays.size());
  const AdamWFactors factors = adamw_factors(settings, lr, adam_step);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const OptimizedTensor& tensor = tensors[i];
    kernels::adamw({.count = tensor.count,
                    .single = settings.form == AdamWForm::kSingle,
                    .clip = clip,
                    .decay = 1.0f - static_cast<float>(lr * decays[i]),
                    .m_keep = factors.m_keep,
                    .m_take = factors.m_take,
                    .v_keep = factors.v_keep,
                    .v_take = factors.v_take,
                    .sqrt_bc2 = factors.sqrt_bc2,
                    .eps = static_cast<float>(settings.eps),
                    .step = factors.step,
                    .gradient = tensor.gradient,
                    .p = tensor.value,
                    .m = tensor.exp_avg,
                    .v = tensor.exp_avg_sq},
                   pool);
  }
}

}  // namespace dz::optim
