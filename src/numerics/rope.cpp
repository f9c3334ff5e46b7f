#include "numerics/rope.h"

#include "base/check.h"
#include "numerics/functions64.h"

namespace dz::numerics {

std::vector<float> rope_inverse_frequencies(int64_t head_dim, double theta) {
  DZ_CHECK(head_dim > 0 && head_dim % 2 == 0 && theta > 0, "head_dim", head_dim, "theta", theta);
  std::vector<float> frequencies;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const float x = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    frequencies.push_back(1.0f / static_cast<float>(pow(theta, static_cast<double>(x))));
  }
  return frequencies;
}

RopeTable make_rope_table(int64_t head_dim, double theta, int64_t positions, RopeTableKind kind) {
  DZ_CHECK(positions >= 0 && positions <= int64_t{1} << 20, "positions", positions);
  const std::vector<float> frequencies = rope_inverse_frequencies(head_dim, theta);
  RopeTable table{.positions = positions, .half = head_dim / 2, .cos = {}, .sin = {}};
  std::vector<double> exact;
  for (int64_t i = 0; i < table.half; ++i) exact.push_back(1.0 / pow(theta, static_cast<double>(2 * i) / static_cast<double>(head_dim)));
  table.cos.reserve(static_cast<size_t>(positions * table.half));
  table.sin.reserve(static_cast<size_t>(positions * table.half));
  for (int64_t position = 0; position < positions; ++position) {
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const float rounded = static_cast<float>(position) * frequencies[i];
      const double angle = kind == RopeTableKind::kReference ? double{rounded} : static_cast<double>(position) * exact[i];
      table.cos.push_back(static_cast<float>(cos(angle)));
      table.sin.push_back(static_cast<float>(sin(angle)));
    }
  }
  return table;
}

}  // namespace dz::numerics
