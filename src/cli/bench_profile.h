// Where the time of a benchmark went, as a table.
#pragma once

namespace dz::cli {

// Prints the spans that the trace holds of the calling thread, by name, the longest first, under `title`.
void print_profile(const char* title);

}  // namespace dz::cli
