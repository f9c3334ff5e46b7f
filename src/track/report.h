// The report of a run: one HTML file that opens without a network and years later. Charts of loss, learning rate, gradient norm and
// speed; held-out loss by source; the chain of certificates; skipped steps; sample texts; the three sections of the configuration.
#pragma once

#include <string>

#include "base/file.h"

namespace dz::track {

inline constexpr int64_t kMaxChartPoints = 2000;  // of one curve (track/series.h)
inline constexpr int64_t kMaxTableRows = 400;     // of one table; the page says what it left out

// The page for the run directory `run`. Reads metrics.jsonl, landmarks/step-N/{loss.json,sample.txt}, {recipe,topology,run}.yaml and
// environment.json (an object of facts), and starts.jsonl (one object a start of the trainer; "step": steps done then).
// Errors: those of read_run (track/run_log.h).
std::string render_report(const fs::path& run);

// Writes run/report.html (atomically, so that an open browser sees the old page or the new) and returns its path.
fs::path write_report(const fs::path& run);

}  // namespace dz::track
