// A corpus as batches: what one thread reads while the others work on the batch before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/extract.h"

namespace dz::text {

inline constexpr int64_t kBatchBytes = int64_t{16} << 20;

struct Batch {
  std::vector<Document> documents;
  ReaderPosition end;       // of the reader behind the last document,
  ExtractCounts counts;     // its counts
  int64_t input_bytes = 0;  // and how much it has read
};

// About `bytes` of text (one longer document is a batch of its own); no documents at the end.
Batch read_batch(DocumentReader& reader, int64_t bytes = kBatchBytes);

// Reads the documents of `reader` in order and calls `work` with their texts in batches of about kBatchBytes; the next batch is read
// meanwhile. Batches depend on the documents only.
void for_each_batch(DocumentReader& reader, const std::function<void(const std::vector<std::string>&)>& work);

}  // namespace dz::text
