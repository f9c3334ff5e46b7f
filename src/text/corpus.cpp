#include "text/corpus.h"

#include <future>
#include <utility>

namespace dz::text {
namespace {

std::vector<std::string> read_texts(DocumentReader& reader) {
  std::vector<std::string> texts;
  for (Document& document : read_batch(reader).documents) texts.push_back(std::move(document.text));
  return texts;
}

}  // namespace

Batch read_batch(DocumentReader& reader, int64_t bytes) {
  Batch batch;
  Document document;
  for (int64_t sum = 0; sum < bytes && reader.next(document);) {
    sum += static_cast<int64_t>(document.text.size());
    document.text.shrink_to_fit();  // a text that grew while it was read has up to twice the room
    batch.documents.push_back(std::exchange(document, {}));
  }
  batch.end = reader.position();
  batch.counts = reader.counts();
  batch.input_bytes = reader.input_bytes();
  return batch;
}

void for_each_batch(DocumentReader& reader, const std::function<void(const std::vector<std::string>&)>& work) {
  std::vector<std::string> texts = read_texts(reader);
  while (!texts.empty()) {
    // Should `work` throw, the destructor of the future waits for the reading thread first.
    std::future<std::vector<std::string>> next = std::async(std::launch::async, [&] { return read_texts(reader); });
    work(texts);
    texts = next.get();
  }
}

}  // namespace dz::text
