// An attention layer with made-up numbers, for measuring how long one takes.
#pragma once

#include <vector>

#include "kernels/attention.h"

namespace dz::kernels {

// T: bf16 or float. `shape`: first_query 0.
template <class T>
class AttentionSample {
 public:
  explicit AttentionSample(const AttentionShape& shape);
  void forward(ThreadPool& pool);
  void backward(ThreadPool& pool);  // of the forward pass before it

 private:
  AttentionShape shape_;
  std::vector<T> q_, k_, v_, dout_, out_, dv_;
  std::vector<float> dq_, dk_, row_max_, row_scale_;
};

extern template class AttentionSample<bf16>;
extern template class AttentionSample<float>;

}  // namespace dz::kernels
