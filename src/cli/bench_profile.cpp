#include "cli/bench_profile.h"

#include <fmt/format.h>

#include <vector>

#include "base/trace.h"

namespace dz::cli {

void print_profile(const char* title) {
  const std::vector<TraceTotal> totals = Trace::totals();
  double all = 0;
  for (const TraceTotal& total : totals) all += total.self_seconds;
  fmt::print("{:28} {:>9} {:>10} {:>7}\n", title, "calls", "seconds", "share");
  for (const TraceTotal& total : totals)
    fmt::print("{:28} {:>9} {:>10.4f} {:>6.1f}%\n", total.name, total.count, total.self_seconds, 100 * total.self_seconds / all);
}

}  // namespace dz::cli
