// A product, the form that multiplies it, and what follows from both: shared by the walks over it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/gemm_form.h"
#include "kernels/gemm_pack.h"

namespace dz::kernels {

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
constexpr int64_t pieces(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

constexpr int64_t kLine = 64;  // bytes of a cache line

struct Range {
  int64_t begin = 0, size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// [0, count) in ranges of at most `limit`, about equal, each but the last a multiple of `unit`.
struct Cut {
  int64_t count, step;
  Cut(int64_t all, int64_t limit, int64_t unit) : count(all), step(round_up(pieces(all, pieces(all, limit)), unit)) {}
  int64_t parts() const { return pieces(count, step); }
  Range operator[](int64_t i) const { return {i * step, std::min(step, count - i * step)}; }
};

template <class T>
struct GemmJob {
  const GemmForm& form;
  const Gemm<T>& product;
  BlockMap map;
  PackSide a_pack, b_pack;
  Operand<T> a, b;

  GemmJob(const GemmForm& f, const Gemm<T>& p)
      : form(f),
        product(p),
        map(p.k, p.k_segment),
        a_pack(a_side(f)),
        b_pack(b_side(f)),
        a{p.a, p.m, p.a_row, p.a_col},
        b{p.b, p.n, p.b_col, p.b_row} {}
  int64_t tile() const { return form.rows * form.cols; }
  int64_t lane_bytes() const { return form.a_block / form.rows; }  // of one packed lane of a 32-block

  // Where a finished tile goes: the product's output, or its accumulators.
  struct Target {
    GemmStore store;
    GemmForm::Finish finish;
    int64_t size;  // bytes of an element
  };
  Target target(int64_t row, int64_t col) const {
    if (product.out == nullptr) {
      return {{.out = product.acc + row * product.acc_stride + col, .stride = product.acc_stride, .add = product.join}, form.keep, sizeof(float)};
    }
    return {{.out = product.out + row * product.out_stride + col,
             .stride = product.out_stride,
             .bias = product.bias == nullptr ? nullptr : product.bias + col,
             .add = product.add_to_out},
            form.finish,
            sizeof(T)};
  }

  // The tile at (row, col) to where it goes.
  void finish(int64_t row, int64_t col, const float* tile) const {
    const Target to = target(row, col);
    to.finish(to.store, tile, form.cols, std::min(form.rows, product.m - row), std::min(form.cols, product.n - col));
  }
};

// Rows x cols sums at `sums` into a tile, +0 past them.
void load_tile(const float* sums, int64_t stride, int64_t rows, int64_t cols, const GemmForm& form, float* tile);

// The tile configuration of a form on this thread, while it lives.
class FormInUse {
 public:
  explicit FormInUse(const GemmForm& form) : form_(form) {
    if (form_.begin != nullptr) form_.begin();
  }
  ~FormInUse() {
    if (form_.end != nullptr) form_.end();
  }
  FormInUse(const FormInUse&) = delete;
  FormInUse& operator=(const FormInUse&) = delete;

 private:
  const GemmForm& form_;
};

// Whether the walk for few rows takes the product.
template <class T>
bool takes_few(const GemmJob<T>& job);
template <class T>
void few_gemm(const GemmJob<T>& job, ThreadPool* pool);
template <class T>
void small_gemm(const GemmJob<T>& job, ThreadPool* pool);
template <class T>
void held_gemm(const GemmJob<T>& job, ThreadPool* pool);
template <class T>
void grouped_gemm(const GemmJob<T>& job, ThreadPool* pool);

// Results of one task of a small product.
inline constexpr int64_t kSmallRows = 64, kSmallCols = 128;

}  // namespace dz::kernels
