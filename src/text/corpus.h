// A corpus as batches: what one thread reads while the others work on the batch before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/extract.h"

namespace dz::text {

inline constexpr int64_t kBatchBytes = int64_t{16} << 20;

// Reads the documents of `reader` in order and calls `work` with batches of about kBatchBytes (one longer document is a batch of its
// own); the next batch is read meanwhile. Batches depend on the documents only.
void for_each_batch(DocumentReader& reader, const std::function<void(const std::vector<std::string>&)>& work);

}  // namespace dz::text
