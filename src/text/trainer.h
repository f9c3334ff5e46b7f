// Trains a byte-level BPE vocabulary; merges and file are equal to what the `tokenizers` library makes of the same text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dz {
class ThreadPool;
}

namespace dz::text {

class DocumentReader;

struct TrainerOptions {
  int64_t vocab_size = 4096;                                    // special tokens, alphabet and merges; a small text stops earlier
  std::vector<std::string> special_tokens = {"<|endoftext|>"};  // get the first ids, in this order
  bool initial_alphabet = true;                                 // all 256 bytes, seen or not; without it some text cannot be encoded
  int64_t min_frequency = 0;                                    // a rarer pair is not merged
  int64_t max_token_length = 0;                                 // 0: no limit. The library's rule: a new pair must be shorter than this
};

// Pieces of the text (cl100k pattern) and how often each occurs.
class WordCounts {
 public:
  WordCounts();
  WordCounts(WordCounts&&) noexcept;
  WordCounts& operator=(WordCounts&&) noexcept;
  ~WordCounts();

  void add_text(std::string_view text);   // one item: pieces do not span its ends. Special tokens in it are text
  void add_lines(std::string_view text);  // cuts behind each \n first, as the library does with a file
  void merge(const WordCounts& other);
  int64_t distinct() const;
  std::vector<std::pair<std::string, int64_t>> sorted() const;  // bytewise

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

enum class Feed {
  kLines,      // as the library trains from files: no piece spans a line end
  kDocuments,  // as it trains from an iterator over the documents
};

// Counts all that `reader` still has. The result does not depend on the number of threads. `progress` is called with the bytes read so far.
WordCounts count_words(DocumentReader& reader, Feed feed, ThreadPool& pool, const std::function<void(int64_t)>& progress = nullptr);

struct TrainedVocabulary {
  std::vector<std::string> special_tokens;
  std::vector<std::string> tokens;                          // by id, in the library's spelling (one character a byte)
  std::vector<std::pair<std::string, std::string>> merges;  // in order of rank
};

// `progress` (merges made, merges wanted) is called now and then. ConfigError when vocab_size cannot hold alphabet and special tokens.
TrainedVocabulary train_bpe(const WordCounts& counts, const TrainerOptions& options, const std::function<void(int64_t, int64_t)>& progress = nullptr);

// The tokenizer.json text: no line breaks, merges as pairs, cl100k split, ByteLevel decoder.
std::string to_tokenizer_json(const TrainedVocabulary& vocabulary);

}  // namespace dz::text
