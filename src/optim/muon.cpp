#include "optim/muon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "kernels/gemm.h"
#include "kernels/muon.h"
#include "kernels/state.h"
#include "numerics/rounding.h"
#include "optim/clip.h"

namespace dz::optim {
namespace {

constexpr int64_t kMostSteps = 99;  // torch refuses 100

[[noreturn]] void refuse(const std::string& where, const char* key, const std::string& found, const std::string& expected) {
  throw ConfigError(Complaint{.where = where + "." + key, .found = found, .expected = expected, .hint = ""});
}

float rounded(float x) { return numerics::to_float(numerics::to_bf16(x)); }

// Element (i, j) at data[i * row + j * col].
struct Strided {
  const bf16* data;
  int64_t row, col;
};

kernels::Gemm<bf16> product(int64_t m, int64_t n, int64_t k, Strided a, Strided b) {
  return {.m = m, .n = n, .k = k, .a = a.data, .a_row = a.row, .a_col = a.col, .b = b.data, .b_row = b.row, .b_col = b.col};
}

kernels::Gemm<bf16> into(float* acc, kernels::Gemm<bf16> product) {
  product.acc = acc;
  product.acc_stride = product.n;
  return product;
}

template <class T>
T* room(std::vector<T>& memory, int64_t count) {
  if (memory.size() < static_cast<size_t>(count)) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

}  // namespace

void check(const MuonSettings& settings, const std::string& where) {
  const auto number = [&](const char* key, double value, bool good, const char* expected) {
    if (!good || !std::isfinite(value)) refuse(where, key, fmt::format("{}", value), expected);
  };
  number("lr", settings.lr, settings.lr >= 0, "0 or more");
  number("momentum", settings.momentum, settings.momentum >= 0 && settings.momentum <= 1, "a number in [0, 1]");
  number("weight_decay", settings.weight_decay, settings.weight_decay >= 0, "0 or more");
  number("eps", settings.eps, settings.eps >= 1e-30, "at least 1e-30");
  if (settings.ns_steps < 1 || settings.ns_steps > kMostSteps)
    refuse(where, "ns_steps", std::to_string(settings.ns_steps), fmt::format("1 to {}", kMostSteps));
  if (settings.ns_coefficients.size() != 3)
    refuse(where, "ns_coefficients", fmt::format("{} numbers", settings.ns_coefficients.size()), "three: a, b and c of a x + b x^3 + c x^5");
}

bool is_muon_matrix(std::string_view name, const Shape& shape) { return shape.size() == 2 && name.starts_with("model.layers."); }

double adjusted_lr(const MuonSettings& settings, double lr, int64_t rows, int64_t cols) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(cols);
  const double ratio =
      settings.adjust_lr_fn == AdjustLr::kMatchRmsAdamW ? 0.2 * __builtin_sqrt(std::max(r, c)) : __builtin_sqrt(std::max(1.0, r / c));
  return lr * ratio;
}

void Muon::orthogonalize(int64_t rows, int64_t cols, float* x, bf16* out, ThreadPool& pool) {
  const int64_t count = rows * cols, side = std::min(rows, cols), length = std::max(rows, cols);
  const GradientView all{.name = "", .count = count, .data = x};
  const float norm = std::max(rounded(global_norm({&all, 1}, pool)), rounded(static_cast<float>(settings_.eps)));
  kernels::muon_normalize({.count = count, .norm = norm, .x = x, .out = out}, pool);

  const auto a = static_cast<float>(settings_.ns_coefficients[0]), b = static_cast<float>(settings_.ns_coefficients[1]),
             c = static_cast<float>(settings_.ns_coefficients[2]);
  bf16* const gram = room(gram_, side * side);
  bf16* const polynomial = room(polynomial_, side * side);
  float* const acc = x;  // not read any more
  // The iteration is on W, the wide orientation [side, length]: out itself or its transpose, which only strides tell apart. gram and polynomial are
  // symmetric to the bit, because the factors of a link commute; so either orientation has the same bits.
  const bool wide = rows <= cols;
  const Strided x_rows{out, cols, 1}, x_cols{out, 1, cols};
  const Strided w = wide ? x_rows : x_cols, w_transposed = wide ? x_cols : x_rows;
  const Strided g{gram, side, 1}, g_transposed{gram, 1, side}, p{polynomial, side, 1}, p_transposed{polynomial, 1, side};
  for (int64_t step = 0; step < settings_.ns_steps; ++step) {
    kernels::Gemm<bf16> squares = product(side, side, length, w, w_transposed);
    squares.out = gram;
    squares.out_stride = side;
    kernels::gemm(squares, pool);
    kernels::gemm(into(acc, product(side, side, side, g, g_transposed)), pool);
    kernels::muon_combine({.count = side * side, .x_scale = b, .acc_scale = c, .x = gram, .acc = acc, .out = polynomial}, pool);
    kernels::gemm(into(acc, wide ? product(rows, cols, side, p, x_rows) : product(rows, cols, side, x_rows, p_transposed)), pool);
    kernels::muon_combine({.count = count, .x_scale = a, .acc_scale = 1, .x = out, .acc = acc, .out = out}, pool);
  }
}

int64_t Muon::scratch_bytes() const {
  return static_cast<int64_t>(sizeof(float) * update_.size() + sizeof(bf16) * (x_.size() + gram_.size() + polynomial_.size()));
}

void Muon::update(const MuonMatrix& matrix, double lr, double decay, float clip, ThreadPool& pool) {
  const int64_t count = matrix.rows * matrix.cols;
  DZ_CHECK(count > 0, "rows", matrix.rows, "cols", matrix.cols);
  float* const update = room(update_, count);
  bf16* const x = room(x_, count);
  kernels::muon_momentum({.count = count,
                          .clip = clip,
                          .take = static_cast<float>(1 - settings_.momentum),
                          .momentum = static_cast<float>(settings_.momentum),
                          .nesterov = settings_.nesterov,
                          .gradient = matrix.gradient,
                          .m = matrix.momentum,
                          .update = update},
                         pool);
  orthogonalize(matrix.rows, matrix.cols, update, x, pool);
  kernels::muon_apply({.count = count,
                       .decay = static_cast<float>(1 - lr * decay),
                       .step = static_cast<float>(-adjusted_lr(settings_, lr, matrix.rows, matrix.cols)),
                       .x = x,
                       .p = matrix.value},
                      pool);
}

}  // namespace dz::optim
