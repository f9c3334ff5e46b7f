// Norms, RoPE, SwiGLU and the column sums in scalar code against float64, and their backward formulas against numeric derivatives of the
// float64 forward pass.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/ref_support.h"
#include "numerics/rope.h"

namespace dz::kernels::test {
namespace {

using numerics::to_float;
using Doubles = std::vector<double>;

// d(sum of dy * forward(x)) / d x by central differences.
Doubles numeric_gradient(const std::function<Doubles(const Doubles&)>& forward, Doubles x, const Doubles& dy) {
  Doubles gradient(x.size());
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const Doubles above = forward(x);
    x[i] = kept - kStep;
    const Doubles below = forward(x);
    x[i] = kept;
    for (size_t j = 0; j < dy.size(); ++j) gradient[i] += dy[j] * (above[j] - below[j]) / (2 * kStep);
  }
  return gradient;
}

Doubles norm(const Doubles& x, const Doubles& weight, double eps) {
  const size_t width = weight.size();
  Doubles y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (size_t j = 0; j < width; ++j) squares += x[row + j] * x[row + j];
    for (size_t j = 0; j < width; ++j) y[row + j] = x[row + j] / std::sqrt(squares / static_cast<double>(width) + eps) * weight[j];
  }
  return y;
}

Doubles rotate(const Doubles& x, int64_t heads, int64_t dim, int64_t positions, const numerics::RopeTable& table) {
  Doubles y(x.size());
  const int64_t half = dim / 2, rows = static_cast<int64_t>(x.size()) / (heads * dim);
  for (int64_t i = 0; i < rows * heads; ++i) {
    const int64_t position = i / heads % positions;
    for (int64_t j = 0; j < half; ++j) {
      const auto low = static_cast<size_t>(i * dim + j), high = low + static_cast<size_t>(half), at = static_cast<size_t>(position * half + j);
      y[low] = x[low] * double{table.cos[at]} - x[high] * double{table.sin[at]};
      y[high] = x[high] * double{table.cos[at]} + x[low] * double{table.sin[at]};
    }
  }
  return y;
}

template <class T>
class RefRows : public testing::Test {};
using Types = testing::Types<bf16, float>;
TYPED_TEST_SUITE(RefRows, Types);

// One rounding of the result: half an ulp of bf16 is at most 2^-8 of the value.
template <class T>
constexpr double one_rounding() {
  return sizeof(T) == 2 ? 0x1p-8 : 1e-6;
}

TYPED_TEST(RefRows, NormForward) {
  for (const int64_t width : {1, 16, 48, 100, 1000}) {
    Values values(static_cast<uint64_t>(width));
    const int64_t rows = 5;
    const auto x = values.make<TypeParam>(rows * width, 3.0f), residual = values.make<TypeParam>(rows * width);
    const auto weight = values.make<float>(width);
    std::vector<TypeParam> y(x.size());
    std::vector<float> rstd(rows);
    RmsNormForward<TypeParam> args{
        .rows = rows, .width = width, .eps = 1e-6f, .x = x.data(), .weight = weight.data(), .y = y.data(), .rstd = rstd.data()};
    forms<TypeParam>(scalar()).rmsnorm_forward(args, 0, rows);
    Doubles expected = norm(doubles(x), doubles(weight), 1e-6);
    EXPECT_LE(relative_error(y, expected), one_rounding<TypeParam>()) << width;
    args.residual = residual.data();
    forms<TypeParam>(scalar()).rmsnorm_forward(args, 0, rows);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += double{to_float(residual[i])};
    EXPECT_LE(relative_error(y, expected), one_rounding<TypeParam>()) << width;
  }
}

TYPED_TEST(RefRows, NormBackward) {
  for (const int64_t width : {16, 100}) {
    Values values(static_cast<uint64_t>(width) + 7);
    const int64_t rows = 3;
    const auto x = values.make<TypeParam>(rows * width, 2.0f), dy = values.make<TypeParam>(rows * width);
    const auto weight = values.make<float>(width);
    std::vector<TypeParam> y(x.size()), dx(x.size());
    const int64_t blocks = row_blocks(rows, 2);
    std::vector<float> rstd(rows), grad(static_cast<size_t>(width), 0.0f), chains(static_cast<size_t>(2 * blocks * width));
    forms<TypeParam>(scalar()).rmsnorm_forward(
        {.rows = rows, .width = width, .eps = 1e-6f, .x = x.data(), .weight = weight.data(), .y = y.data(), .rstd = rstd.data()}, 0, rows);
    forms<TypeParam>(scalar()).rmsnorm_backward({.rows = rows,
                                                 .width = width,
                                                 .segment = 2,
                                                 .dy = dy.data(),
                                                 .x = x.data(),
                                                 .weight = weight.data(),
                                                 .rstd = rstd.data(),
                                                 .dx = dx.data(),
                                                 .chains = chains.data()},
                                                0, blocks);
    const Doubles expected = numeric_gradient([&](const Doubles& v) { return norm(v, doubles(weight), 1e-6); }, doubles(x), doubles(dy));
    EXPECT_LE(relative_error(dx, expected), one_rounding<TypeParam>());
    scalar().norm_weight_grad({.blocks = blocks, .width = width, .chains = chains.data(), .grad = grad.data()}, 0, width);
    EXPECT_LE(relative_error(grad, numeric_gradient([&](const Doubles& w) { return norm(doubles(x), w, 1e-6); }, doubles(weight), doubles(dy))),
              1e-6);
  }
}

TYPED_TEST(RefRows, QkNormRope) {
  const int64_t heads = 3, dim = 24, width = heads * dim, positions = 3, rows = 6;
  const numerics::RopeTable table = numerics::make_rope_table({.head_dim = dim}, positions, numerics::RopeTableKind::kReference);
  Values values(5);
  const auto x = values.make<TypeParam>(rows * width, 2.0f);
  const auto weight = values.make<float>(width);
  const auto dy = values.make<float>(rows * width);
  std::vector<TypeParam> y(x.size()), dx(x.size());
  const int64_t blocks = row_blocks(rows, positions);
  std::vector<float> rstd(rows), grad(static_cast<size_t>(width), 0.0f), chains(static_cast<size_t>(2 * blocks * width));
  forms<TypeParam>(scalar()).qk_norm_rope_forward({.rows = rows,
                                                   .heads = heads,
                                                   .head_dim = dim,
                                                   .positions = positions,
                                                   .eps = 1e-6f,
                                                   .x = x.data(),
                                                   .weight = weight.data(),
                                                   .cos = table.cos.data(),
                                                   .sin = table.sin.data(),
                                                   .y = y.data(),
                                                   .rstd = rstd.data()},
                                                  0, rows);
  const auto forward = [&](const Doubles& v, const Doubles& w) { return rotate(norm(v, w, 1e-6), heads, dim, positions, table); };
  EXPECT_LE(relative_error(y, forward(doubles(x), doubles(weight))), one_rounding<TypeParam>());
  forms<TypeParam>(scalar()).qk_norm_rope_backward({.rows = rows,
                                                    .heads = heads,
                                                    .head_dim = dim,
                                                    .positions = positions,
                                                    .dy = dy.data(),
                                                    .x = x.data(),
                                                    .weight = weight.data(),
                                                    .rstd = rstd.data(),
                                                    .cos = table.cos.data(),
                                                    .sin = table.sin.data(),
                                                    .dx = dx.data(),
                                                    .chains = chains.data()},
                                                   0, blocks);
  const Doubles expected = numeric_gradient([&](const Doubles& v) { return forward(v, doubles(weight)); }, doubles(x), doubles(dy));
  EXPECT_LE(relative_error(dx, expected), one_rounding<TypeParam>());
  scalar().norm_weight_grad({.blocks = blocks, .width = width, .chains = chains.data(), .grad = grad.data()}, 0, width);
  EXPECT_LE(relative_error(grad, numeric_gradient([&](const Doubles& w) { return forward(doubles(x), w); }, doubles(weight), doubles(dy))), 1e-6);
}

TYPED_TEST(RefRows, QkNormRopeOfOneRowAtItsPosition) {  // what decoding calls: the same bits as the row in the whole sequence
  const int64_t heads = 2, dim = 24, width = heads * dim, positions = 9;
  const numerics::RopeTable table = numerics::make_rope_table({.head_dim = dim}, positions, numerics::RopeTableKind::kReference);
  Values values(6);
  const auto x = values.make<TypeParam>(positions * width);
  const auto weight = values.make<float>(width);
  std::vector<TypeParam> y(x.size()), one(static_cast<size_t>(width));
  std::vector<float> rstd(positions);
  QkNormRopeForward<TypeParam> args{.rows = positions,
                                    .heads = heads,
                                    .head_dim = dim,
                                    .positions = positions,
                                    .eps = 1e-6f,
                                    .x = x.data(),
                                    .weight = weight.data(),
                                    .cos = table.cos.data(),
                                    .sin = table.sin.data(),
                                    .y = y.data(),
                                    .rstd = rstd.data()};
  forms<TypeParam>(scalar()).qk_norm_rope_forward(args, 0, positions);
  args.rows = 1;
  args.positions = 1;
  args.first_position = 7;
  args.x = x.data() + 7 * width;
  args.y = one.data();
  forms<TypeParam>(scalar()).qk_norm_rope_forward(args, 0, 1);
  const std::vector<TypeParam> expected(y.begin() + 7 * width, y.begin() + 8 * width);
  EXPECT_TRUE(same_bits(one, expected));
  args.first_position = 6;
  forms<TypeParam>(scalar()).qk_norm_rope_forward(args, 0, 1);
  EXPECT_FALSE(same_bits(one, expected));
}

double silu(double g) { return g / (1.0 + std::exp(-g)); }

TYPED_TEST(RefRows, Swiglu) {
  const int64_t count = 300;
  Values values(11);
  const auto gate = values.make<TypeParam>(count, 9.0f), up = values.make<TypeParam>(count), dout = values.make<TypeParam>(count);
  std::vector<TypeParam> out(gate.size()), dgate(gate.size()), dup(gate.size());
  forms<TypeParam>(scalar()).swiglu_forward({.count = count, .gate = gate.data(), .up = up.data(), .out = out.data()}, 0, count);
  forms<TypeParam>(scalar()).swiglu_backward(
      {.count = count, .dout = dout.data(), .gate = gate.data(), .up = up.data(), .dgate = dgate.data(), .dup = dup.data()}, 0, count);
  Doubles expected, expected_dgate, expected_dup;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = to_float(gate[i]), u = to_float(up[i]), d = to_float(dout[i]);
    expected.push_back(silu(g) * u);
    expected_dup.push_back(d * silu(g));
    expected_dgate.push_back(d * u * (silu(g + 1e-5) - silu(g - 1e-5)) / 2e-5);
  }
  EXPECT_LE(relative_error(out, expected), one_rounding<TypeParam>());
  EXPECT_LE(relative_error(dup, expected_dup), one_rounding<TypeParam>());
  EXPECT_LE(relative_error(dgate, expected_dgate), one_rounding<TypeParam>());
}

TYPED_TEST(RefRows, SwigluAtTheEnds) {
  const std::vector<TypeParam> gate = {numerics::round_to<TypeParam>(-1e30f), numerics::round_to<TypeParam>(1e30f),
                                       numerics::round_to<TypeParam>(0.0f)};
  const std::vector<TypeParam> one(3, numerics::round_to<TypeParam>(1.0f));
  std::vector<TypeParam> out(3), dgate(3), dup(3);
  forms<TypeParam>(scalar()).swiglu_forward({.count = 3, .gate = gate.data(), .up = one.data(), .out = out.data()}, 0, 3);
  forms<TypeParam>(scalar()).swiglu_backward(
      {.count = 3, .dout = one.data(), .gate = gate.data(), .up = one.data(), .dgate = dgate.data(), .dup = dup.data()}, 0, 3);
  EXPECT_EQ(to_float(out[0]), 0.0f);
  EXPECT_EQ(to_float(out[1]), to_float(gate[1]));
  EXPECT_EQ(to_float(dgate[0]), 0.0f);
  EXPECT_EQ(to_float(dgate[1]), 1.0f);
  EXPECT_EQ(to_float(dgate[2]), 0.5f);
  EXPECT_EQ(to_float(dup[0]), 0.0f);
}

// The column order written out: even rows one chain, odd rows one chain, blocks of 32 restarting at every segment.
template <class T>
float literal_column(const std::vector<T>& dy, int64_t width, int64_t column, int64_t rows, int64_t segment) {
  volatile float total = 0.25f;
  for (int64_t first = 0; first < rows;) {
    const int64_t end = std::min({rows, (first / segment + 1) * segment, first + 32});
    volatile float even = 0, odd = 0;
    for (int64_t i = first; i < first + 32; ++i) {
      const float value = i < end ? to_float(dy[static_cast<size_t>(i * width + column)]) : 0.0f;
      if ((i - first) % 2 == 0)
        even = even + value;
      else
        odd = odd + value;
    }
    volatile float both = even + odd;
    total = total + both;
    first = end;
  }
  return total;
}

TYPED_TEST(RefRows, BiasGradFollowsTheColumnOrder) {
  const int64_t rows = 99, width = 5, segment = 45;
  Values values(12);
  const auto dy = values.make<TypeParam>(rows * width, 7.3f);
  std::vector<float> grad(width, 0.25f);
  forms<TypeParam>(scalar()).bias_grad({.rows = rows, .width = width, .segment = segment, .dy = dy.data(), .grad = grad.data()}, 0, width);
  int other_segment_differs = 0;
  for (int64_t j = 0; j < width; ++j) {
    EXPECT_EQ(grad[static_cast<size_t>(j)], literal_column(dy, width, j, rows, segment)) << j;
    other_segment_differs += grad[static_cast<size_t>(j)] != literal_column(dy, width, j, rows, rows);
  }
  if constexpr (sizeof(TypeParam) == sizeof(float)) {  // sums of a few bf16 values are exact in any order
    EXPECT_GT(other_segment_differs, 0) << "blocks that do not restart must be noticed";
  }
}

TEST(RowBlocks, RestartAtSegments) {
  for (const auto& [rows, segment] : std::vector<std::pair<int64_t, int64_t>>{{1, 0}, {99, 45}, {70, 35}, {64, 32}, {64, 0}, {31, 100}, {96, 33}}) {
    int64_t next = 0;
    const int64_t blocks = row_blocks(rows, segment);
    for (int64_t i = 0; i < blocks; ++i) {
      const RowBlock block = row_block(rows, segment, i);
      EXPECT_EQ(block.first, next);
      next = std::min({rows, next + 32, segment > 0 ? (next / segment + 1) * segment : rows});
      EXPECT_EQ(block.first + block.count, next) << rows << " " << segment;
    }
    EXPECT_EQ(next, rows);
  }
}

// The norm's column order written out; grad starts at a quarter.
template <class T>
float literal_norm_column(const std::vector<T>& dy, const std::vector<T>& x, const std::vector<float>& rstd, int64_t width, int64_t column,
                          int64_t segment) {
  const auto rows = static_cast<int64_t>(rstd.size());
  volatile float total = 0.25f;
  for (int64_t first = 0; first < rows;) {
    const int64_t end = std::min({rows, (first / segment + 1) * segment, first + 32});
    volatile float even = 0, odd = 0;
    for (int64_t i = first; i < first + 32; ++i) {
      const auto at = static_cast<size_t>(i * width + column);
      volatile float n = i < end ? to_float(x[at]) * rstd[static_cast<size_t>(i)] : 0.0f;
      volatile float& chain = (i - first) % 2 == 0 ? even : odd;
      chain = i < end ? std::fma(to_float(dy[at]), n, chain) : chain + 0.0f;
    }
    volatile float both = even + odd;
    total = total + both;
    first = end;
  }
  return total;
}

TYPED_TEST(RefRows, NormWeightGradFollowsTheColumnOrder) {
  const int64_t rows = 99, width = 5, segment = 45, blocks = row_blocks(rows, segment);
  Values values(14);
  const auto dy = values.make<TypeParam>(rows * width, 7.3f), x = values.make<TypeParam>(rows * width);
  const auto weight = values.make<float>(width), rstd = values.make<float>(rows);
  std::vector<TypeParam> dx(dy.size());
  std::vector<float> chains(static_cast<size_t>(2 * blocks * width)), grad(width, 0.25f);
  forms<TypeParam>(scalar()).rmsnorm_backward({.rows = rows,
                                               .width = width,
                                               .segment = segment,
                                               .dy = dy.data(),
                                               .x = x.data(),
                                               .weight = weight.data(),
                                               .rstd = rstd.data(),
                                               .dx = dx.data(),
                                               .chains = chains.data()},
                                              0, blocks);
  scalar().norm_weight_grad({.blocks = blocks, .width = width, .chains = chains.data(), .grad = grad.data()}, 0, width);
  int other_segment_differs = 0;
  for (int64_t j = 0; j < width; ++j) {
    EXPECT_EQ(grad[static_cast<size_t>(j)], literal_norm_column(dy, x, rstd, width, j, segment)) << j;
    other_segment_differs += grad[static_cast<size_t>(j)] != literal_norm_column(dy, x, rstd, width, j, rows);
  }
  EXPECT_GT(other_segment_differs, 0) << "blocks that do not restart must be noticed";
}

TYPED_TEST(RefRows, EmbeddingRoundsAndAddsRowsInOrder) {
  const int64_t rows = 6, width = 20, vocab = 4;
  Values values(13);
  const std::vector<int32_t> tokens = {3, 1, 3, 0, 1, 3};
  const auto table = values.make<float>(vocab * width);
  const auto dy = values.make<TypeParam>(rows * width);
  std::vector<TypeParam> y(static_cast<size_t>(rows * width));
  std::vector<float> grad(static_cast<size_t>(vocab * width), 0.0f);
  forms<TypeParam>(scalar()).embedding_forward({.rows = rows, .width = width, .tokens = tokens.data(), .table = table.data(), .y = y.data()}, 0,
                                               rows);
  forms<TypeParam>(scalar()).embedding_grad({.rows = rows, .width = width, .tokens = tokens.data(), .dy = dy.data(), .grad = grad.data()}, 0, width);
  for (size_t j = 0; j < 20; ++j) {
    EXPECT_EQ(to_float(y[40 + j]), to_float(numerics::round_to<TypeParam>(table[60 + j])));
    EXPECT_EQ(grad[60 + j], (to_float(dy[j]) + to_float(dy[40 + j])) + to_float(dy[100 + j]));
    EXPECT_EQ(bits(grad[40 + j]), 0u) << "a row that no token touches stays +0";
  }
}

}  // namespace
}  // namespace dz::kernels::test
