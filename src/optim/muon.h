// Muon as torch.optim.Muon has it (torch 2.15, torch/optim/_muon.py), for the matrices of the layers; everything else goes on by AdamW. The order of
// operations and every rounding: docs/numerics.md, "Muon". Matrices are f32, row-major.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/tensor.h"

namespace dz {
class ThreadPool;
}

namespace dz::optim {

// How the rate of a matrix follows from its shape.
enum class AdjustLr : uint8_t {
  kOriginal,       // times sqrt(max(1, rows / cols)): Keller Jordan's
  kMatchRmsAdamW,  // times 0.2 * sqrt(max(rows, cols)): Moonshot's, so that rate and decay of AdamW fit
};

// Names and defaults are torch's.
struct MuonSettings {
  double lr = 0;  // the peak for matrices; 0: that of the schedule
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int64_t ns_steps = 5;
  std::vector<double> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;  // the least norm that a matrix is divided by
  AdjustLr adjust_lr_fn = AdjustLr::kOriginal;
};

void check(const MuonSettings& settings, const std::string& where);  // ConfigError

// Whether a tensor is a weight matrix of a layer. torch's Muon takes matrices of hidden layers only; embedding, head, norms and biases are AdamW's.
bool is_muon_matrix(std::string_view name, const Shape& shape);

// lr times the factor of `adjust_lr_fn`, in double.
double adjusted_lr(const MuonSettings& settings, double lr, int64_t rows, int64_t cols);

struct MuonMatrix {
  int64_t rows = 0, cols = 0;
  const float* gradient = nullptr;
  float* value = nullptr;
  float* momentum = nullptr;  // torch's momentum_buffer: an average of gradients, as AdamW's exp_avg
};

class Muon {
 public:
  explicit Muon(MuonSettings settings) : settings_(std::move(settings)) {}
  const MuonSettings& settings() const { return settings_; }

  // One update; `decay` is the weight decay of this matrix, `clip` multiplies the gradient first. Not to be called for a skipped step.
  void update(const MuonMatrix& matrix, double lr, double decay, float clip, ThreadPool& pool);

  // out = the Newton-Schulz iteration of x [rows, cols], whose values are bf16 already; `x` is scratch afterwards, `out` bf16 of the same shape.
  void orthogonalize(int64_t rows, int64_t cols, float* x, bf16* out, ThreadPool& pool);

  // Of the buffers below; after one update of each matrix they grow no more.
  int64_t scratch_bytes() const;

 private:
  MuonSettings settings_;
  // Of the largest matrix so far, rows * cols each; gram and its polynomial are of the smaller side.
  std::vector<float> update_;
  std::vector<bf16> x_, gram_, polynomial_;
};

}  // namespace dz::optim
