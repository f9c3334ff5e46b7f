#include <algorithm>
#include <atomic>

#include "base/thread_pool.h"
#include "text/corpus.h"
#include "text/trainer.h"

namespace dz::text {
namespace {

constexpr size_t kItemBytes = 1 << 18;

// Whole documents; by lines, a long document in parts that end with a line, so that one big file keeps all threads busy.
std::vector<std::string_view> items_of(const std::vector<std::string>& documents, Feed feed) {
  std::vector<std::string_view> items;
  for (std::string_view rest : documents) {
    while (feed == Feed::kLines && rest.size() > kItemBytes) {
      const size_t newline = rest.find('\n', kItemBytes);
      if (newline == std::string_view::npos) break;
      items.push_back(rest.substr(0, newline + 1));
      rest.remove_prefix(newline + 1);
    }
    if (!rest.empty()) items.push_back(rest);
  }
  return items;
}

}  // namespace

WordCounts count_words(DocumentReader& reader, Feed feed, ThreadPool& pool, const std::function<void(int64_t)>& progress) {
  std::vector<WordCounts> parts(static_cast<size_t>(pool.threads()));
  int64_t bytes = 0;
  for_each_batch(reader, [&](const std::vector<std::string>& documents) {
    const std::vector<std::string_view> items = items_of(documents, feed);
    std::atomic<size_t> next = 0;
    // Which table counts an item is chance; the sums are not.
    pool.parallel_for(pool.threads(), [&](int64_t part) {
      WordCounts& counts = parts[static_cast<size_t>(part)];
      for (size_t i = next++; i < items.size(); i = next++) feed == Feed::kLines ? counts.add_lines(items[i]) : counts.add_text(items[i]);
    });
    for (const std::string& document : documents) bytes += static_cast<int64_t>(document.size());
    if (progress) progress(bytes);
  });
  for (size_t i = 1; i < parts.size(); ++i) parts[0].merge(parts[i]);
  return std::move(parts[0]);
}

}  // namespace dz::text
