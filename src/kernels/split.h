// How the units of an op are cut into ranges for the threads. Any cut gives the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/table.h"

namespace dz::kernels {

// About this many elements make a range worth the hand-over to another thread (some microseconds of work).
inline constexpr int64_t kElementsPerRange = 8192;

// `unit_elements`: the elements that one unit touches. Ranges are multiples of `multiple` units, such as a cache line of columns.
template <class Args>
void split_units(ThreadPool& pool, int64_t units, int64_t unit_elements, int64_t multiple, Form<Args> form, const Args& args) {
  const int64_t enough = kElementsPerRange / std::max<int64_t>(unit_elements, 1) + 1;
  const int64_t grain = (enough + multiple - 1) / multiple * multiple;
  pool.parallel_ranges(units, grain, [&](int64_t begin, int64_t end) { form(args, begin, end); });
}

}  // namespace dz::kernels
