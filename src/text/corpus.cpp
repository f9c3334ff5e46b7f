#include "text/corpus.h"

#include <future>

namespace dz::text {
namespace {

std::vector<std::string> read_batch(DocumentReader& reader) {
  std::vector<std::string> documents;
  std::string document;
  for (int64_t bytes = 0; bytes < kBatchBytes && reader.next(document);) {
    bytes += static_cast<int64_t>(document.size());
    documents.push_back(std::move(document));
    document.clear();
  }
  return documents;
}

}  // namespace

void for_each_batch(DocumentReader& reader, const std::function<void(const std::vector<std::string>&)>& work) {
  std::vector<std::string> documents = read_batch(reader);
  while (!documents.empty()) {
    // Should `work` throw, the destructor of the future waits for the reading thread first.
    std::future<std::vector<std::string>> next = std::async(std::launch::async, [&] { return read_batch(reader); });
    work(documents);
    documents = next.get();
  }
}

}  // namespace dz::text
