// What the writer and the reader of an index share. Internal to this room.
#pragma once

#include <string_view>

namespace dz::data {

inline constexpr std::string_view kIndexFormat = "deltazero-index-1";

}  // namespace dz::data
