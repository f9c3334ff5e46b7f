// Muon against torch.optim.Muon (tests/golden/optim), against float64, and against itself on every instruction set and thread count.
#include "optim/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/table.h"
#include "numerics/rounding.h"
#include "optim/golden.h"

namespace dz::optim {
namespace {

using test::Json;
using Values = std::vector<float>;

const std::vector<std::string> kMatrices = {"square", "tall", "wide"};

const checkpoint::TensorSource& golden() {
  static const checkpoint::TensorSource source = checkpoint::TensorSource::open(test::golden_path("muon.safetensors"));
  return source;
}

MuonSettings settings_of(const Json& row) {
  return {.momentum = row["momentum"],
          .nesterov = row["nesterov"],
          .weight_decay = row["weight_decay"],
          .ns_steps = row["ns_steps"],
          .ns_coefficients = row["ns_coefficients"],
          .eps = row["eps"],
          .adjust_lr_fn = row["adjust_lr_fn"] == "original" ? AdjustLr::kOriginal : AdjustLr::kMatchRmsAdamW};
}

struct Shape2 {
  int64_t rows = 0, cols = 0;
};
Shape2 shape_of(const std::string& name) {
  const Json& shape = test::golden_json("muon.json")["shapes"][name];
  return {shape[0], shape[1]};
}

// The iteration in double, without a rounding: what bf16 is measured against.
std::vector<double> exact_iteration(const Values& x, Shape2 shape, const MuonSettings& settings) {
  const bool wide = shape.rows <= shape.cols;
  const auto side = static_cast<size_t>(std::min(shape.rows, shape.cols)), length = static_cast<size_t>(std::max(shape.rows, shape.cols));
  const auto at = [&](size_t i, size_t k) { return wide ? i * length + k : k * side + i; };
  double squares = 0;
  for (const float value : x) squares += double{value} * double{value};
  std::vector<double> w(x.size());
  for (size_t i = 0; i < x.size(); ++i) w[i] = double{x[i]} / std::sqrt(squares);
  const auto& c = settings.ns_coefficients;
  for (int64_t step = 0; step < settings.ns_steps; ++step) {
    std::vector<double> gram(side * side), polynomial(side * side), next(w.size());
    for (size_t i = 0; i < side; ++i) {
      for (size_t j = 0; j < side; ++j) {
        for (size_t k = 0; k < length; ++k) gram[i * side + j] += w[at(i, k)] * w[at(j, k)];
      }
    }
    for (size_t i = 0; i < side; ++i) {
      for (size_t j = 0; j < side; ++j) {
        double sum = 0;
        for (size_t k = 0; k < side; ++k) sum += gram[i * side + k] * gram[k * side + j];
        polynomial[i * side + j] = c[1] * gram[i * side + j] + c[2] * sum;
      }
    }
    for (size_t i = 0; i < side; ++i) {
      for (size_t k = 0; k < length; ++k) {
        double sum = 0;
        for (size_t j = 0; j < side; ++j) sum += polynomial[i * side + j] * w[at(j, k)];
        next[at(i, k)] = c[0] * w[at(i, k)] + sum;
      }
    }
    w = next;
  }
  return w;
}

template <class A, class B>
double largest_difference(const A& a, const B& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

struct Matrix {
  Values value, momentum;
};

// All matrices after `steps` updates with the gradients of the goldens.
std::map<std::string, Matrix> train(const MuonSettings& settings, int64_t steps, int threads = 1, float clip = 1.0f,
                                    const std::function<void(int64_t, const std::map<std::string, Matrix>&)>& look = {}) {
  ThreadPool pool(threads);
  Muon muon(settings);
  std::map<std::string, Matrix> matrices;
  std::map<std::string, Values> gradients;
  for (const std::string& name : kMatrices) {
    matrices[name].value = test::read_tensor(golden(), "init." + name);
    matrices[name].momentum.resize(matrices[name].value.size());
    gradients[name] = test::read_tensor(golden(), "grads." + name);
  }
  for (int64_t step = 1; step <= steps; ++step) {
    for (auto& [name, matrix] : matrices) {
      const float* gradient = gradients[name].data() + static_cast<size_t>(step - 1) * matrix.value.size();
      muon.update({.rows = shape_of(name).rows,
                   .cols = shape_of(name).cols,
                   .gradient = gradient,
                   .value = matrix.value.data(),
                   .momentum = matrix.momentum.data()},
                  0.02, settings.weight_decay, clip, pool);
    }
    if (look) look(step, matrices);
  }
  return matrices;
}

TEST(Muon, NewtonSchulzEqualsTorchUpToRareRoundings) {
  ThreadPool pool(1);
  const MuonSettings settings;
  for (const std::string& name : kMatrices) {
    const Shape2 shape = shape_of(name);
    Values input = test::read_tensor(golden(), "ns.input." + name);
    for (float& x : input) x = numerics::to_float(numerics::to_bf16(x));
    const std::vector<double> exact = exact_iteration(input, shape, settings);
    const Values theirs = test::read_tensor(golden(), "ns.output." + name);
    std::vector<bf16> out(input.size());
    Muon(settings).orthogonalize(shape.rows, shape.cols, input.data(), out.data(), pool);
    Values ours;
    for (const bf16 x : out) ours.push_back(numerics::to_float(x));
    EXPECT_LE(largest_difference(ours, theirs), 0x1p-7 * std::fabs(*std::ranges::max_element(theirs, {}, [](float x) { return std::fabs(x); })));
    // The distance of bf16 from float64 is torch's own. A step less is far outside of it.
    const double distance = largest_difference(ours, exact), torch_distance = largest_difference(theirs, exact);
    EXPECT_LE(distance, 1.1 * torch_distance) << name;
    EXPECT_LE(distance * 0.02, 3e-4) << name;
    MuonSettings fewer = settings;
    fewer.ns_steps = 4;
    EXPECT_GT(largest_difference(ours, exact_iteration(input, shape, fewer)), 5 * torch_distance) << name;
    RecordProperty(name + "_vs_torch", std::to_string(largest_difference(ours, theirs)));
    RecordProperty(name + "_vs_float64", std::to_string(distance));
  }
}

TEST(Muon, TwentyUpdatesAsTorchMakesThem) {
  for (const auto& [name, row] : test::golden_json("muon.json")["cases"].items()) {
    ASSERT_EQ(row["lr"], 0.02);
    const auto compare = [&, &kase = name](int64_t step, const std::map<std::string, Matrix>& matrices) {
      if (step > 2 && step != 20) return;
      for (const auto& [tensor, matrix] : matrices) {
        const std::string prefix = kase + ".step" + std::to_string(step) + ".";
        EXPECT_LE(largest_difference(matrix.momentum, test::read_tensor(golden(), prefix + "momentum." + tensor)), 1e-7) << prefix << tensor;
        const Values theirs = test::read_tensor(golden(), prefix + "param." + tensor);
        EXPECT_LE(largest_difference(matrix.value, theirs), step == 20 ? 1e-3 : 3e-4) << prefix << tensor;
        RecordProperty(prefix + tensor, std::to_string(largest_difference(matrix.value, theirs)));
      }
    };
    train(settings_of(row), 20, 1, 1.0f, compare);
  }
}

TEST(Muon, EveryKeyMovesTheWeights) {
  const std::map<std::string, Matrix> usual = train({}, 3);
  for (const MuonSettings& other :
       {MuonSettings{.momentum = 0.9}, MuonSettings{.momentum = 0.3}, MuonSettings{.nesterov = false}, MuonSettings{.weight_decay = 0},
        MuonSettings{.ns_steps = 4}, MuonSettings{.ns_coefficients = {3.4, -4.775, 2.0315}}, MuonSettings{.eps = 1e3},
        MuonSettings{.adjust_lr_fn = AdjustLr::kMatchRmsAdamW}}) {
    EXPECT_NE(train(other, 3)["tall"].value, usual.at("tall").value);
  }
  // The norm is divided out, so clipping moves momentum more than weights; but it is applied.
  EXPECT_NE(train({}, 1, 1, 0.5f)["wide"].momentum, train({}, 1)["wide"].momentum);
}

// Every instruction set, every thread count; the transposed matrix with transposed gradients has the transposed bits.
TEST(Muon, BitsDependOnNeitherIsaNorThreads) {
  const kernels::Isa before = kernels::active().isa;
  std::map<std::string, Matrix> expected;
  for (const kernels::Isa isa : kernels::available()) {
    kernels::activate(isa);
    for (const int threads : {1, 2, 3}) {
      const std::map<std::string, Matrix> found = train({.adjust_lr_fn = AdjustLr::kMatchRmsAdamW}, 5, threads, 0.7f);
      if (expected.empty()) expected = found;
      for (const std::string& name : kMatrices) {
        EXPECT_EQ(found.at(name).value, expected.at(name).value) << kernels::name_of(isa) << " " << threads << " " << name;
        EXPECT_EQ(found.at(name).momentum, expected.at(name).momentum) << kernels::name_of(isa) << " " << threads << " " << name;
      }
    }
  }
  kernels::activate(before);
  EXPECT_NE(train({.adjust_lr_fn = AdjustLr::kMatchRmsAdamW}, 5, 1, std::nextafter(0.7f, 1.0f))["tall"].momentum, expected["tall"].momentum);
}

TEST(Muon, ATransposedMatrixHasTheTransposedBits) {
  ThreadPool pool(1);
  const Shape2 shape = shape_of("tall");
  Values tall = test::read_tensor(golden(), "ns.input.tall"), wide(tall.size());
  for (size_t i = 0; i < tall.size(); ++i) {
    const size_t row = i / static_cast<size_t>(shape.cols), col = i % static_cast<size_t>(shape.cols);
    wide[col * static_cast<size_t>(shape.rows) + row] = tall[i] = numerics::to_float(numerics::to_bf16(tall[i]));
  }
  std::vector<bf16> a(tall.size()), b(tall.size());
  Muon muon({});
  muon.orthogonalize(shape.rows, shape.cols, tall.data(), a.data(), pool);
  muon.orthogonalize(shape.cols, shape.rows, wide.data(), b.data(), pool);
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t row = i / static_cast<size_t>(shape.cols), col = i % static_cast<size_t>(shape.cols);
    ASSERT_EQ(a[i].bits, b[col * static_cast<size_t>(shape.rows) + row].bits) << i;
  }
}

TEST(Muon, AGradientOfZeroIsNoMistake) {
  ThreadPool pool(1);
  Values zero(12, 0.0f), value(12, 1.0f), momentum(12, 0.0f);
  Muon({}).update({.rows = 3, .cols = 4, .gradient = zero.data(), .value = value.data(), .momentum = momentum.data()}, 0.02, 0.1, 1.0f, pool);
  for (const float x : value) EXPECT_EQ(x, static_cast<float>(1 - 0.02 * 0.1));
}

TEST(Muon, RatesOfShapes) {
  MuonSettings settings;
  EXPECT_EQ(adjusted_lr(settings, 0.02, 24, 40), 0.02);
  EXPECT_EQ(adjusted_lr(settings, 0.02, 400, 100), 0.04);
  settings.adjust_lr_fn = AdjustLr::kMatchRmsAdamW;
  EXPECT_DOUBLE_EQ(adjusted_lr(settings, 1.0, 100, 400), 4.0);
}

TEST(Muon, TakesMatricesOfLayersOnly) {
  EXPECT_TRUE(is_muon_matrix("model.layers.0.mlp.down_proj.weight", {64, 192}));
  for (const auto& [name, shape] : {std::pair<std::string, Shape>{"model.embed_tokens.weight", {512, 64}},
                                    {"lm_head.weight", {512, 64}},
                                    {"model.norm.weight", {64}},
                                    {"model.layers.0.self_attn.q_norm.weight", {64}},
                                    {"model.layers.0.self_attn.q_proj.bias", {64}}}) {
    EXPECT_FALSE(is_muon_matrix(name, shape)) << name;
  }
}

TEST(Muon, MistakesAreNamed) {
  EXPECT_NO_THROW(check(MuonSettings{}, "o"));
  for (const MuonSettings& bad :
       {MuonSettings{.lr = -1}, MuonSettings{.momentum = 1.5}, MuonSettings{.weight_decay = std::nan("")}, MuonSettings{.ns_steps = 100},
        MuonSettings{.ns_steps = 0}, MuonSettings{.ns_coefficients = {1, 2}}, MuonSettings{.eps = 0}}) {
    EXPECT_THROW(check(bad, "recipe.optimizer.muon"), ConfigError);
  }
}

}  // namespace
}  // namespace dz::optim
