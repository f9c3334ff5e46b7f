// The files under src/track/page and Chart.js as text, embedded by cmake/embed.cmake.
#pragma once

#include <string_view>

namespace dz::track {

extern const std::string_view kChartJs;
extern const std::string_view kPageHtml;  // {{name}} marks a place to fill (track/html.h)
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace dz::track
