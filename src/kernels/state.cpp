#include "kernels/state.h"

#include "base/trace.h"
#include "kernels/split.h"

namespace dz::kernels {
namespace {

constexpr int64_t kLine = 64;

}  // namespace

void add(const Add& args, ThreadPool& pool) {
  const TraceSpan span("add");
  split_units(pool, args.count, 1, kLine, active().add, args);
}

void cast_to_bf16(const CastToBf16& args, ThreadPool& pool) {
  const TraceSpan span("cast to bf16");
  split_units(pool, args.count, 1, kLine, active().cast_to_bf16, args);
}

void squared_norms(const SquaredNorms& args, ThreadPool& pool) {
  const TraceSpan span("gradient norm");
  split_units(pool, (args.count + kNormBlock - 1) / kNormBlock, kNormBlock, 1, active().squared_norms, args);
}

void adamw(const AdamW& args, ThreadPool& pool) {
  const TraceSpan span("adamw");
  split_units(pool, args.count, 1, kLine, active().adamw, args);
}

}  // namespace dz::kernels
