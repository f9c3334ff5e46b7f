// Points of a chart, thinned so that a page with a million steps still opens.
#pragma once

#include <cstdint>
#include <vector>

namespace dz::track {

struct Point {
  double x = 0;
  double y = 0;  // NaN: a gap
};

// At most about `limit` points, x ascending as given: the range is cut into limit / 2 buckets of equal counts and each keeps its lowest
// and its highest point, so that no spike is lost. Gaps survive where a whole bucket is one. A series within the limit comes back as it is.
std::vector<Point> decimate(const std::vector<Point>& points, int64_t limit);

// Exponential moving average over the finite points, weight 2 / (span + 1) for the newest; started with the first finite value;
// where there is none, the average stays.
std::vector<Point> smooth(const std::vector<Point>& points, double span);

}  // namespace dz::track
