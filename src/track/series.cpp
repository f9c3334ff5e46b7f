#include "track/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dz::track {

std::vector<Point> decimate(const std::vector<Point>& points, int64_t limit) {
  const auto count = static_cast<int64_t>(points.size());
  if (count <= limit) return points;
  const int64_t buckets = std::max<int64_t>(1, limit / 2);
  std::vector<Point> out;
  out.reserve(static_cast<size_t>(limit));
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    const Point* low = nullptr;
    const Point* high = nullptr;
    const int64_t begin = count * bucket / buckets, end = count * (bucket + 1) / buckets;
    for (int64_t i = begin; i < end; ++i) {
      const Point& point = points[static_cast<size_t>(i)];
      if (!std::isfinite(point.y)) continue;
      if (!low || point.y < low->y) low = &point;
      if (!high || point.y > high->y) high = &point;
    }
    if (!low) {
      out.push_back({points[static_cast<size_t>(begin)].x, std::numeric_limits<double>::quiet_NaN()});
    } else if (low == high) {
      out.push_back(*low);
    } else {
      out.push_back(low < high ? *low : *high);
      out.push_back(low < high ? *high : *low);
    }
  }
  return out;
}

std::vector<Point> smooth(const std::vector<Point>& points, double span) {
  const double weight = 2 / (span + 1);
  double average = std::numeric_limits<double>::quiet_NaN();
  std::vector<Point> out;
  out.reserve(points.size());
  for (const Point& point : points) {
    if (std::isfinite(point.y)) average = std::isfinite(average) ? average + weight * (point.y - average) : point.y;
    out.push_back({point.x, average});
  }
  return out;
}

}  // namespace dz::track
