// Sizes as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>

namespace dz::cli {

// "5GB" (decimal), "3GiB", "200KB", plain bytes, as transformers' max_shard_size; K, M, G, T alone are powers of 1,024, as memory is sold.
// UsageError naming `option`.
int64_t parse_byte_size(const std::string& text, const std::string& option);

// 1536 -> "1.50 KiB"; three digits that count.
std::string binary_size(int64_t bytes);

}  // namespace dz::cli
