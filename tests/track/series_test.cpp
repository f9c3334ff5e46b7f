#include "track/series.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dz::track {
namespace {

std::vector<Point> wave(int64_t count) {
  std::vector<Point> points;
  for (int64_t i = 0; i < count; ++i) points.push_back({static_cast<double>(i), static_cast<double>(i % 10)});
  return points;
}

bool holds(const std::vector<Point>& points, double y) {
  for (const Point& point : points)
    if (point.y == y) return true;
  return false;
}

TEST(Series, ShortOnesStayAsTheyAre) {
  EXPECT_EQ(decimate(wave(100), 100).size(), 100u);
  EXPECT_TRUE(decimate({}, 100).empty());
}

TEST(Series, LongOnesKeepEverySpikeAndTheOrder) {
  std::vector<Point> points = wave(1'000'000);
  points[123'456].y = 1e6;
  points[654'321].y = -1e6;
  const std::vector<Point> thin = decimate(points, 2000);
  EXPECT_LE(thin.size(), 2000u);
  EXPECT_GE(thin.size(), 1000u);
  EXPECT_TRUE(holds(thin, 1e6));
  EXPECT_TRUE(holds(thin, -1e6));
  for (size_t i = 1; i < thin.size(); ++i) EXPECT_LT(thin[i - 1].x, thin[i].x);
  // Taking every 500th point instead would lose both.
  std::vector<Point> every;
  for (size_t i = 0; i < points.size(); i += 500) every.push_back(points[i]);
  EXPECT_FALSE(holds(every, 1e6));
}

TEST(Series, ABucketOfNothingIsAGap) {
  std::vector<Point> points = wave(1000);
  for (size_t i = 200; i < 400; ++i) points[i].y = std::nan("");
  int64_t gaps = 0;
  for (const Point& point : decimate(points, 20)) gaps += std::isnan(point.y) ? 1 : 0;
  EXPECT_EQ(gaps, 2);
}

TEST(Series, AverageIgnoresWhatIsNotFinite) {
  const std::vector<Point> average = smooth({{1, std::nan("")}, {2, 4}, {3, std::nan("")}, {4, 8}}, 3);
  EXPECT_TRUE(std::isnan(average[0].y));
  EXPECT_EQ(average[1].y, 4);
  EXPECT_EQ(average[2].y, 4);
  EXPECT_EQ(average[3].y, 6);
}

}  // namespace
}  // namespace dz::track
