// Scalar attention: exact masks (which keys may move which bits), float64 with numeric derivatives, decoding against the full pass.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/ref_support.h"

namespace dz::kernels::test {
namespace {

using numerics::to_float;
using Doubles = std::vector<double>;

template <class T>
struct Inputs {
  AttentionShape shape;
  std::vector<int32_t> first_visible;
  std::vector<T> q, k, v, dout;
};

template <class T>
struct Outputs {
  std::vector<T> out, dv;
  std::vector<float> row_max, row_scale, dq, dk;
};

template <class T>
Inputs<T> make(AttentionShape shape, uint64_t seed = 1) {
  Values values(seed);
  const int64_t positions = shape.instances * shape.keys;
  Inputs<T> in{.shape = shape, .first_visible = {}, .q = {}, .k = {}, .v = {}, .dout = {}};
  in.q = values.make<T>(positions * shape.heads * shape.head_dim, 1.5f);
  in.k = values.make<T>(positions * shape.kv_heads * shape.head_dim, 1.5f);
  in.v = values.make<T>(positions * shape.kv_heads * shape.head_dim);
  in.dout = values.make<T>(positions * shape.heads * shape.head_dim);
  return in;
}

template <class T>
AttentionShape shape_of(const Inputs<T>& in) {
  AttentionShape shape = in.shape;
  shape.first_visible = in.first_visible.empty() ? nullptr : in.first_visible.data();
  return shape;
}

template <class T>
Outputs<T> run(const Inputs<T>& in, int threads = 1) {
  activate(Isa::kScalar);
  ThreadPool pool(threads);
  const AttentionShape& s = in.shape;
  Outputs<T> o;
  o.out.resize(in.q.size());
  o.row_max.resize(static_cast<size_t>(s.instances * s.heads * s.keys));
  o.row_scale = o.row_max;
  o.dq.assign(in.q.size(), 9.0f);
  o.dk.assign(in.k.size(), 9.0f);
  o.dv.resize(in.v.size());
  attention_forward(AttentionForward<T>{.shape = shape_of(in),
                                        .q = in.q.data(),
                                        .k = in.k.data(),
                                        .v = in.v.data(),
                                        .out = o.out.data(),
                                        .row_max = o.row_max.data(),
                                        .row_scale = o.row_scale.data()},
                    pool);
  attention_backward(AttentionBackward<T>{.shape = shape_of(in),
                                          .q = in.q.data(),
                                          .k = in.k.data(),
                                          .v = in.v.data(),
                                          .out = o.out.data(),
                                          .dout = in.dout.data(),
                                          .row_max = o.row_max.data(),
                                          .row_scale = o.row_scale.data(),
                                          .dq = o.dq.data(),
                                          .dk = o.dk.data(),
                                          .dv = o.dv.data()},
                     pool);
  return o;
}

template <class T>
bool sees(const Inputs<T>& in, int64_t instance, int64_t query, int64_t key) {
  const int64_t document = in.first_visible.empty() ? 0 : in.first_visible[static_cast<size_t>(instance * in.shape.keys + query)];
  return key <= query && key >= document && (in.shape.window == 0 || query - key < in.shape.window);
}

// The textbook formula in double, from double copies of the stored inputs.
template <class T>
Doubles forward64(const Inputs<T>& in, const Doubles& q, const Doubles& k, const Doubles& v) {
  const AttentionShape& s = in.shape;
  const auto dim = static_cast<size_t>(s.head_dim);
  Doubles out(q.size(), 0.0);
  for (int64_t row = 0; row < s.instances * s.keys * s.heads; ++row) {
    const int64_t head = row % s.heads, query = row / s.heads % s.keys, instance = row / s.heads / s.keys;
    const auto q_at = static_cast<size_t>(row) * dim;
    Doubles weight(static_cast<size_t>(s.keys), 0.0);
    double peak = -INFINITY, total = 0;
    const auto kv_at = [&](int64_t key) { return static_cast<size_t>((instance * s.keys + key) * s.kv_heads + head / (s.heads / s.kv_heads)) * dim; };
    for (int64_t key = 0; key < s.keys; ++key) {
      double dot = 0;
      for (size_t d = 0; d < dim; ++d) dot += q[q_at + d] * k[kv_at(key) + d];
      weight[static_cast<size_t>(key)] = sees(in, instance, query, key) ? dot / std::sqrt(static_cast<double>(dim)) : -INFINITY;
      peak = std::max(peak, weight[static_cast<size_t>(key)]);
    }
    for (double& w : weight) total += w = std::exp(w - peak);
    for (int64_t key = 0; key < s.keys; ++key) {
      for (size_t d = 0; d < dim; ++d) out[q_at + d] += weight[static_cast<size_t>(key)] / total * v[kv_at(key) + d];
    }
  }
  return out;
}

// Central differences of sum(dout * out) for every `step`-th element; the same elements of `got` are returned beside them.
template <class T, class G>
std::pair<std::vector<G>, Doubles> sampled(const Inputs<T>& in, const std::vector<T> Inputs<T>::*input, const std::vector<G>& got, size_t step) {
  Doubles values[3] = {doubles(in.q), doubles(in.k), doubles(in.v)};
  Doubles& x = values[input == &Inputs<T>::q ? 0 : input == &Inputs<T>::k ? 1 : 2];
  const Doubles dout = doubles(in.dout);
  std::pair<std::vector<G>, Doubles> result;
  for (size_t i = 0; i < x.size(); i += step) {
    const double kept = x[i];
    double sum = 0;
    for (const double sign : {1.0, -1.0}) {
      x[i] = kept + sign * 1e-5;
      const Doubles out = forward64(in, values[0], values[1], values[2]);
      for (size_t j = 0; j < out.size(); ++j) sum += sign * dout[j] * out[j];
    }
    x[i] = kept;
    result.first.push_back(got[i]);
    result.second.push_back(sum / 2e-5);
  }
  return result;
}

template <class T>
class RefAttention : public testing::Test {};
using Types = testing::Types<bf16, float>;
TYPED_TEST_SUITE(RefAttention, Types);

struct ShapeCase {
  int64_t instances, keys, heads, kv_heads, head_dim, window;
  bool documents;
};
constexpr ShapeCase kCases[] = {{1, 1, 1, 1, 4, 0, false}, {2, 70, 4, 2, 24, 0, false}, {1, 130, 2, 1, 24, 37, true}, {1, 65, 1, 1, 64, 64, false}};

template <class T>
Inputs<T> make(const ShapeCase& c) {
  Inputs<T> in = make<T>(
      AttentionShape{.instances = c.instances, .keys = c.keys, .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .window = c.window});
  for (int64_t i = 0; c.documents && i < c.instances * c.keys; ++i) in.first_visible.push_back(static_cast<int32_t>(i % c.keys / 50 * 50));
  return in;
}

TYPED_TEST(RefAttention, AgreesWithFloat64AndItsDerivatives) {
  const double bf16_pass = sizeof(TypeParam) == 2 ? 1.0 : 0.0;
  for (const ShapeCase& c : kCases) {
    const Inputs<TypeParam> in = make<TypeParam>(c);
    const Outputs<TypeParam> o = run(in);
    EXPECT_LE(relative_error(o.out, forward64(in, doubles(in.q), doubles(in.k), doubles(in.v))), 2e-6 + 6e-3 * bf16_pass) << c.keys;
    const size_t step = c.keys > 1 ? 499 : 1;
    const auto [dq, dq64] = sampled(in, &Inputs<TypeParam>::q, o.dq, step);
    const auto [dk, dk64] = sampled(in, &Inputs<TypeParam>::k, o.dk, step);
    const auto [dv, dv64] = sampled(in, &Inputs<TypeParam>::v, o.dv, step);
    EXPECT_LE(relative_error(dq, dq64), 1e-5 + 2e-2 * bf16_pass) << c.keys;
    EXPECT_LE(relative_error(dk, dk64), 1e-5 + 2e-2 * bf16_pass) << c.keys;
    EXPECT_LE(relative_error(dv, dv64), 1e-5 + 2e-2 * bf16_pass) << c.keys;
  }
}

TYPED_TEST(RefAttention, ThreadsMoveNoBit) {
  const Inputs<TypeParam> in = make<TypeParam>(kCases[1]);
  const Outputs<TypeParam> one = run(in);
  for (const int threads : {2, 3}) {
    const Outputs<TypeParam> more = run(in, threads);
    EXPECT_TRUE(same_bits(one.out, more.out) && same_bits(one.dq, more.dq) && same_bits(one.dk, more.dk) && same_bits(one.dv, more.dv));
  }
  Inputs<TypeParam> other = in;
  other.k[5] = numerics::round_to<TypeParam>(to_float(other.k[5]) + 0.01f);
  EXPECT_FALSE(same_bits(one.out, run(other).out)) << "the comparison must be able to fail";
}

// Rows of queries whose output changes when key `key` (and its value) changes.
template <class T>
std::vector<int64_t> moved_by(const Inputs<T>& in, int64_t key) {
  Inputs<T> changed = in;
  const int64_t width = in.shape.kv_heads * in.shape.head_dim;
  for (int64_t d = key * width; d < (key + 1) * width; ++d) {
    changed.k[static_cast<size_t>(d)] = numerics::round_to<T>(1.0f - to_float(in.k[static_cast<size_t>(d)]));
    changed.v[static_cast<size_t>(d)] = numerics::round_to<T>(2.0f - to_float(in.v[static_cast<size_t>(d)]));
  }
  const Outputs<T> a = run(in), b = run(changed);
  std::vector<int64_t> rows;
  const auto row = static_cast<size_t>(in.shape.heads * in.shape.head_dim);
  for (size_t i = 0; i < a.out.size() / row; ++i) {
    if (std::memcmp(a.out.data() + i * row, b.out.data() + i * row, row * sizeof(T)) != 0) rows.push_back(static_cast<int64_t>(i));
  }
  return rows;
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> out;
  for (int64_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

TYPED_TEST(RefAttention, AWindowOfFourSeesFourKeysWithItself) {
  const Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 150, .heads = 1, .kv_heads = 1, .head_dim = 8, .window = 4});
  for (const int64_t key : {0, 30, 62, 63, 64, 127, 149}) EXPECT_EQ(moved_by(in, key), range(key, std::min<int64_t>(150, key + 4))) << key;
}

TYPED_TEST(RefAttention, AWindowOfOneIsTheValueItself) {
  const Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 70, .heads = 1, .kv_heads = 1, .head_dim = 8, .window = 1});
  EXPECT_TRUE(same_bits(run(in).out, in.v));
}

TYPED_TEST(RefAttention, AWindowOfTheLengthIsFullAttention) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 130, .heads = 2, .kv_heads = 1, .head_dim = 8});
  const Outputs<TypeParam> full = run(in);
  for (const int64_t window : {130, 131, 100000}) {
    in.shape.window = window;
    const Outputs<TypeParam> o = run(in);
    EXPECT_TRUE(same_bits(full.out, o.out) && same_bits(full.dq, o.dq) && same_bits(full.dk, o.dk) && same_bits(full.dv, o.dv)) << window;
  }
  in.shape.window = 129;
  EXPECT_FALSE(same_bits(full.out, run(in).out));
}

TYPED_TEST(RefAttention, DocumentsDoNotSeeEachOther) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 140, .heads = 1, .kv_heads = 1, .head_dim = 8});
  EXPECT_EQ(moved_by(in, 10), range(10, 140)) << "without the mask later documents do change";
  for (int32_t i = 0; i < 140; ++i) in.first_visible.push_back(i < 40 ? 0 : i < 100 ? 40 : 100);
  EXPECT_EQ(moved_by(in, 10), range(10, 40));
  EXPECT_EQ(moved_by(in, 40), range(40, 100));
  EXPECT_EQ(moved_by(in, 139), range(139, 140));
}

TYPED_TEST(RefAttention, ARowWithoutKeysIsZeroAndTheFirstTokenSeesItself) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 3, .heads = 1, .kv_heads = 1, .head_dim = 8});
  in.first_visible = {0, 2, 0};  // position 1 sees nothing
  const Outputs<TypeParam> o = run(in);
  for (size_t d = 0; d < 8; ++d) {
    EXPECT_EQ(to_float(o.out[d]), to_float(in.v[d]));
    EXPECT_EQ(bits(to_float(o.out[8 + d])), 0u);
    EXPECT_EQ(o.dq[8 + d], 0.0f);
  }
  EXPECT_EQ(o.row_scale[1], 0.0f);
}

TYPED_TEST(RefAttention, TwoTokensByHand) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 2, .heads = 1, .kv_heads = 1, .head_dim = 4});
  for (size_t d = 0; d < 4; ++d) in.q[4 + d] = in.k[d] = in.k[4 + d] = numerics::round_to<TypeParam>(1.0f);  // equal scores: the mean of both values
  in.v = std::vector<TypeParam>(8, numerics::round_to<TypeParam>(1.0f));
  in.v[4] = numerics::round_to<TypeParam>(3.0f);
  const Outputs<TypeParam> o = run(in);
  EXPECT_EQ(to_float(o.out[0]), 1.0f);
  EXPECT_EQ(to_float(o.out[4]), 2.0f);
  EXPECT_EQ(to_float(o.out[5]), 1.0f);
}

TYPED_TEST(RefAttention, DecodingARowGivesTheBitsOfTheFullPass) {
  for (const int64_t window : {0, 5, 64}) {
    const Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 200, .heads = 4, .kv_heads = 2, .head_dim = 24, .window = window});
    const std::vector<TypeParam> full = run(in).out;
    const int64_t width = 4 * 24;
    ThreadPool pool(1);
    for (const int64_t position : {0, 1, 31, 63, 64, 65, 127, 150, 199}) {
      std::vector<TypeParam> row(static_cast<size_t>(width));
      AttentionShape shape = in.shape;
      shape.keys = position + 1;
      shape.first_query = position;
      attention_forward(
          AttentionForward<TypeParam>{.shape = shape, .q = in.q.data() + position * width, .k = in.k.data(), .v = in.v.data(), .out = row.data()},
          pool);
      EXPECT_EQ(std::memcmp(row.data(), full.data() + position * width, row.size() * sizeof(TypeParam)), 0) << window << " " << position;
    }
  }
}

TYPED_TEST(RefAttention, OutputHoldsNoMinusZero) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 5, .heads = 1, .kv_heads = 1, .head_dim = 4});
  in.v = std::vector<TypeParam>(in.v.size(), numerics::round_to<TypeParam>(-0.0f));
  for (const TypeParam x : run(in).out) EXPECT_EQ(bits(to_float(x)), 0u);
}

TYPED_TEST(RefAttention, NanOfAKeyReachesExactlyTheRowsThatSeeIt) {
  Inputs<TypeParam> in = make<TypeParam>(AttentionShape{.keys = 10, .heads = 1, .kv_heads = 1, .head_dim = 4, .window = 3});
  in.k[5 * 4] = numerics::round_to<TypeParam>(NAN);
  const Outputs<TypeParam> o = run(in);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(std::isnan(to_float(o.out[i * 4])), i >= 5 && i < 8) << i;
}

}  // namespace
}  // namespace dz::kernels::test
