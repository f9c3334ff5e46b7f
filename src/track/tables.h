// The parts of the report that are tables and texts, as HTML that is safe to insert (every text of the run is escaped).
#pragma once

#include <string>
#include <vector>

#include "track/run_log.h"

namespace dz::track {

// "1,234,567"
std::string with_commas(int64_t value);
// Four significant digits, trailing zeros kept; "–" for NaN.
std::string short_number(double value);

// Tiles with the numbers that people ask for first: steps, tokens, losses, speed, skips.
std::string summary_tiles(const RunLog& log);
// State digests of the last step that has them, in full, and a table of all, shortened with the full value as tooltip.
std::string certificate_table(const RunLog& log);
std::string skip_table(const RunLog& log);
// Held-out loss by source: a column for the first, the best and the last landmark.
std::string held_out_table(const RunLog& log);
std::string samples(const RunLog& log);

// One line of a table; `cells` are HTML already.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

}  // namespace dz::track
