// The element types of the format, from the lowest rank to the highest: the writer sorts by rank, descending (safetensors tensor.rs).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace dz::checkpoint {

struct FormatType {
  std::string_view name;
  int bits;
  std::optional<DType> ours;  // none: this program can list such tensors, not compute with them
};

inline constexpr std::array<FormatType, 22> kFormatTypes = {{
    {"BOOL", 8, {}},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, DType::kU8},
    {"I8", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, DType::kU16},
    {"F16", 16, DType::kF16},
    {"BF16", 16, DType::kBF16},
    {"I32", 32, DType::kI32},
    {"U32", 32, DType::kU32},
    {"F32", 32, DType::kF32},
    {"C64", 64, {}},
    {"F64", 64, DType::kF64},
    {"I64", 64, DType::kI64},
    {"U64", 64, {}},
}};

// The rank of a dtype by its name, or -1.
int format_rank(std::string_view name);

inline constexpr int64_t kMaxHeader = 100'000'000;  // bytes of JSON, for readers and writers

}  // namespace dz::checkpoint
