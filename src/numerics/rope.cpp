#include "numerics/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "numerics/functions64.h"

namespace dz::numerics {
namespace {

// Two pairs at the same place would divide by 0: the references widen the ramp by so much.
constexpr double kLeastRamp = 0.001;

void check_shape(const RopeShape& shape) {
  DZ_CHECK(shape.head_dim > 0 && shape.head_dim % 2 == 0 && shape.theta > 1, "head_dim", shape.head_dim, "theta", shape.theta);
}

double ramp_width(const YarnRamp& ramp) { return ramp.low == ramp.high ? kLeastRamp : ramp.high - ramp.low; }

// Float steps, in the order in which the references take them.
float stretch(float power, size_t pair, const YarnRamp& ramp, const YarnScaling& yarn) {
  const float place = (static_cast<float>(pair) - static_cast<float>(ramp.low)) / static_cast<float>(ramp_width(ramp));
  const float keep = 1.0f - std::clamp(place, 0.0f, 1.0f);
  const float interpolated = 1.0f / (static_cast<float>(yarn.factor) * power), plain = 1.0f / power;
  return interpolated * (1.0f - keep) + plain * keep;
}

}  // namespace

double yarn_attention_factor(double factor) {
  DZ_CHECK(factor >= 1, "factor", factor);
  return 0.1 * log(factor) + 1.0;
}

YarnRamp yarn_ramp(int64_t head_dim, double theta, const YarnScaling& yarn) {
  const double dim = static_cast<double>(head_dim), original = static_cast<double>(yarn.original_max_position_embeddings);
  const auto pair_of = [&](double turns) { return dim * log(original / (turns * 2.0 * std::numbers::pi)) / (2.0 * log(theta)); };
  double low = pair_of(yarn.beta_fast), high = pair_of(yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  return {std::max(low, 0.0), std::min(high, dim - 1.0)};
}

std::vector<float> rope_inverse_frequencies(const RopeShape& shape) {
  check_shape(shape);
  const YarnRamp ramp = shape.yarn ? yarn_ramp(shape.head_dim, shape.theta, *shape.yarn) : YarnRamp{};
  std::vector<float> frequencies;
  for (int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const float x = static_cast<float>(2 * i) / static_cast<float>(shape.head_dim);
    const float power = static_cast<float>(pow(shape.theta, static_cast<double>(x)));
    frequencies.push_back(shape.yarn ? stretch(power, static_cast<size_t>(i), ramp, *shape.yarn) : 1.0f / power);
  }
  return frequencies;
}

std::vector<double> exact_rope_inverse_frequencies(const RopeShape& shape) {
  check_shape(shape);
  const YarnRamp ramp = shape.yarn ? yarn_ramp(shape.head_dim, shape.theta, *shape.yarn) : YarnRamp{};
  std::vector<double> frequencies;
  for (int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const double plain = 1.0 / pow(shape.theta, static_cast<double>(2 * i) / static_cast<double>(shape.head_dim));
    frequencies.push_back(plain);
    if (!shape.yarn) continue;
    const double place = std::clamp((static_cast<double>(i) - ramp.low) / ramp_width(ramp), 0.0, 1.0);
    frequencies.back() = plain * (1.0 - place) + plain / shape.yarn->factor * place;
  }
  return frequencies;
}

RopeTable make_rope_table(const RopeShape& shape, int64_t positions, RopeTableKind kind) {
  DZ_CHECK(positions >= 0 && positions <= kMaxPositions, "positions", positions);
  const bool reference = kind == RopeTableKind::kReference;
  const std::vector<float> rounded = rope_inverse_frequencies(shape);
  const std::vector<double> exact = exact_rope_inverse_frequencies(shape);
  const double factor = shape.yarn ? shape.yarn->attention_factor : 1.0;
  const auto scaled = [&](double value) {
    return reference ? static_cast<float>(value) * static_cast<float>(factor) : static_cast<float>(value * factor);
  };
  RopeTable table{.positions = positions, .half = shape.head_dim / 2, .cos = {}, .sin = {}};
  table.cos.reserve(static_cast<size_t>(positions * table.half));
  table.sin.reserve(static_cast<size_t>(positions * table.half));
  for (int64_t position = 0; position < positions; ++position) {
    for (size_t i = 0; i < rounded.size(); ++i) {
      const double angle = reference ? double{static_cast<float>(position) * rounded[i]} : static_cast<double>(position) * exact[i];
      table.cos.push_back(scaled(cos(angle)));
      table.sin.push_back(scaled(sin(angle)));
    }
  }
  return table;
}

}  // namespace dz::numerics
