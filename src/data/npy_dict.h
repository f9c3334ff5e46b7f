// The Python dict literal in a .npy header. Internal to this room.
#pragma once

#include <string>
#include <string_view>

#include "data/token_file.h"

namespace dz::data {

// {'descr': '<u4', 'fortran_order': False, 'shape': (5,), } and white space: these three keys, each once, in any order. DataError naming
// `where` for anything else. data_offset is left 0.
NpyHeader parse_npy_dict(std::string_view text, const std::string& where);

}  // namespace dz::data
