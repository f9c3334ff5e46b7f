#include "kernels/loss.h"

#include "base/trace.h"
#include "kernels/split.h"

namespace dz::kernels {

template <class T>
void cross_entropy(const CrossEntropy<T>& args, ThreadPool& pool) {
  const TraceSpan span("cross entropy");
  split_units(pool, args.rows, args.vocab, 1, forms<T>().cross_entropy, args);
}

template void cross_entropy(const CrossEntropy<bf16>&, ThreadPool&);
template void cross_entropy(const CrossEntropy<float>&, ThreadPool&);

}  // namespace dz::kernels
