// The merge loop. Its rules (ties, stale queue entries, which pairs are counted) are those of the `tokenizers` library, BpeTrainer,
// version 0.23: a merge list is only as reproducible as the rule for equal counts.
#include "text/trainer.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "text/byte_alphabet.h"

namespace dz::text {
namespace {

constexpr int64_t kProgressEvery = 64;  // merges

uint64_t pair_key(int32_t left, int32_t right) { return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right); }
int32_t left_of(uint64_t pair) { return static_cast<int32_t>(pair >> 32); }
int32_t right_of(uint64_t pair) { return static_cast<int32_t>(pair & 0xFFFFFFFF); }

// Pair -> value, open addressing. The key ~0 is free: ids are not negative.
template <class Value>
class PairMap {
 public:
  struct Slot {
    uint64_t key = ~uint64_t{0};
    Value value{};
  };

  PairMap() : slots_(1 << 10) {}

  Value& operator[](uint64_t key) {
    size_t i = find(key);
    if (slots_[i].key != key) {
      if ((used_ + 1) * 2 > slots_.size()) {
        grow();
        i = find(key);
      }
      slots_[i].key = key;
      ++used_;
    }
    return slots_[i].value;
  }
  template <class Visit>
  void each(Visit&& visit) {
    for (Slot& slot : slots_)
      if (slot.key != ~uint64_t{0}) visit(slot.key, slot.value);
  }

 private:
  size_t find(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = (key * 0x9E3779B97F4A7C15u) >> 32 & mask;
    while (slots_[i].key != key && slots_[i].key != ~uint64_t{0}) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (Slot& slot : old)
      if (slot.key != ~uint64_t{0}) slots_[find(slot.key)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// Distinct words in which a pair came up, ascending.
using Places = std::vector<int32_t>;

struct QueueEntry {
  uint64_t count;  // a count below zero (max_token_length can make one) wraps to a huge one, as in the library
  uint64_t pair;
  int32_t places;  // index into Merger::places_
  // The top of the queue has the highest count; among equal ones the smallest (left, right).
  friend bool operator<(const QueueEntry& a, const QueueEntry& b) {
    if (a.count != b.count) return a.count < b.count;
    if (a.pair != b.pair) return a.pair > b.pair;
    return a.places > b.places;
  }
};

class Merger {
 public:
  Merger(const WordCounts& counts, const TrainerOptions& options);
  TrainedVocabulary run(const std::function<void(int64_t, int64_t)>& progress);

 private:
  struct Word {
    int64_t begin;  // into symbols_
    int64_t size;   // shrinks as pairs merge
    int64_t count;
  };

  int32_t add_token(const std::string& token, int64_t length);
  void add_alphabet(const std::vector<std::pair<std::string, int64_t>>& words);
  void count_pairs();
  void push(uint64_t pair, Places places);
  void merge_word(int32_t index, uint64_t pair, int32_t merged, PairMap<Places>& fresh);
  void change(uint64_t pair, int32_t word, int64_t sign, PairMap<Places>& fresh);
  bool is_short(int32_t left, int32_t right) const { return lengths_[static_cast<size_t>(left)] + lengths_[static_cast<size_t>(right)] < limit_; }

  const TrainerOptions& options_;
  int64_t limit_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> lengths_;  // in bytes of text
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<int32_t> symbols_;
  std::vector<Word> words_;
  PairMap<int64_t> pair_counts_;
  std::vector<Places> places_;
  std::priority_queue<QueueEntry> queue_;
};

Merger::Merger(const WordCounts& counts, const TrainerOptions& options)
    : options_(options), limit_(options.max_token_length > 0 ? options.max_token_length : INT64_MAX) {
  const std::vector<std::pair<std::string, int64_t>> words = counts.sorted();
  for (const std::string& token : options.special_tokens)
    add_token(token, std::count_if(token.begin(), token.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  add_alphabet(words);
  int32_t of_byte[256];
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto it = ids_.find(spell_bytes({&c, 1}));
    of_byte[byte] = it == ids_.end() ? -1 : it->second;
  }
  for (const auto& [word, count] : words) {
    words_.push_back({static_cast<int64_t>(symbols_.size()), static_cast<int64_t>(word.size()), count});
    for (const char byte : word) symbols_.push_back(of_byte[static_cast<unsigned char>(byte)]);
  }
}

// A token that is there already keeps its id.
int32_t Merger::add_token(const std::string& token, int64_t length) {
  const auto [it, is_new] = ids_.try_emplace(token, static_cast<int32_t>(tokens_.size()));
  if (is_new) {
    tokens_.push_back(token);
    lengths_.push_back(length);
  }
  return it->second;
}

// The bytes in the order of the characters that spell them.
void Merger::add_alphabet(const std::vector<std::pair<std::string, int64_t>>& words) {
  bool wanted[256];
  std::fill(std::begin(wanted), std::end(wanted), options_.initial_alphabet);
  for (const auto& word : words)
    for (const char byte : word.first) wanted[static_cast<unsigned char>(byte)] = true;
  std::vector<std::pair<uint32_t, char>> order;
  for (int byte = 0; byte < 256; ++byte)
    if (wanted[byte]) order.emplace_back(char_of_byte(static_cast<unsigned char>(byte)), static_cast<char>(byte));
  std::sort(order.begin(), order.end());
  for (const auto& [spelling, byte] : order) add_token(spell_bytes({&byte, 1}), 1);
}

// Every adjacent pair counts, overlapping ones too: "aaa" has (a, a) twice. The length limit is not asked for bytes.
void Merger::count_pairs() {
  PairMap<Places> where;
  for (size_t w = 0; w < words_.size(); ++w) {
    const int32_t* symbols = symbols_.data() + words_[w].begin;
    for (int64_t i = 0; i + 1 < words_[w].size; ++i) change(pair_key(symbols[i], symbols[i + 1]), static_cast<int32_t>(w), 1, where);
  }
  where.each([&](uint64_t pair, Places& places) { push(pair, std::move(places)); });
}

void Merger::change(uint64_t pair, int32_t word, int64_t sign, PairMap<Places>& fresh) {
  pair_counts_[pair] += sign * words_[static_cast<size_t>(word)].count;
  if (sign < 0) return;
  Places& places = fresh[pair];
  if (places.empty() || places.back() != word) places.push_back(word);
}

void Merger::push(uint64_t pair, Places places) {
  queue_.push({static_cast<uint64_t>(pair_counts_[pair]), pair, static_cast<int32_t>(places_.size())});
  places_.push_back(std::move(places));
}

// Left to right, without overlap. The counts of the neighbours change; that of the pair itself stays, as in the library.
void Merger::merge_word(int32_t index, uint64_t pair, int32_t merged, PairMap<Places>& fresh) {
  Word& word = words_[static_cast<size_t>(index)];
  int32_t* symbols = symbols_.data() + word.begin;
  const int32_t left = left_of(pair);
  const int32_t right = right_of(pair);
  int64_t out = 0;
  for (int64_t in = 0; in < word.size; ++out) {
    if (in + 1 >= word.size || symbols[in] != left || symbols[in + 1] != right) {
      symbols[out] = symbols[in++];
      continue;
    }
    if (out > 0) {
      change(pair_key(symbols[out - 1], left), index, -1, fresh);
      if (is_short(symbols[out - 1], merged)) change(pair_key(symbols[out - 1], merged), index, 1, fresh);
    }
    in += 2;
    if (in < word.size) {
      change(pair_key(right, symbols[in]), index, -1, fresh);
      if (is_short(merged, symbols[in])) change(pair_key(merged, symbols[in]), index, 1, fresh);
    }
    symbols[out] = merged;
  }
  word.size = out;
}

TrainedVocabulary Merger::run(const std::function<void(int64_t, int64_t)>& progress) {
  count_pairs();
  std::vector<uint64_t> merges;
  const int64_t wanted = options_.vocab_size - static_cast<int64_t>(tokens_.size());
  while (static_cast<int64_t>(tokens_.size()) < options_.vocab_size && !queue_.empty()) {
    const QueueEntry top = queue_.top();
    queue_.pop();
    // Counts change while an entry waits; it is put back with the count of now.
    const auto now = static_cast<uint64_t>(pair_counts_[top.pair]);
    if (now != top.count) {
      queue_.push({now, top.pair, top.places});
      continue;
    }
    if (now < 1 || static_cast<uint64_t>(options_.min_frequency) > now) break;
    const auto left = static_cast<size_t>(left_of(top.pair));
    const auto right = static_cast<size_t>(right_of(top.pair));
    const int32_t merged = add_token(tokens_[left] + tokens_[right], lengths_[left] + lengths_[right]);
    merges.push_back(top.pair);
    const Places places = std::exchange(places_[static_cast<size_t>(top.places)], {});
    PairMap<Places> fresh;
    for (const int32_t word : places) merge_word(word, top.pair, merged, fresh);
    fresh.each([&](uint64_t pair, Places& words) {
      if (pair_counts_[pair] > 0) push(pair, std::move(words));
    });
    if (progress && static_cast<int64_t>(merges.size()) % kProgressEvery == 0) progress(static_cast<int64_t>(merges.size()), wanted);
  }

  TrainedVocabulary result{.special_tokens = options_.special_tokens, .tokens = tokens_, .merges = {}};
  // A pair can be merged twice, when its words came up in two steps; it keeps its last place.
  PairMap<size_t> last;
  for (size_t i = 0; i < merges.size(); ++i) last[merges[i]] = i;
  for (size_t i = 0; i < merges.size(); ++i)
    if (last[merges[i]] == i)
      result.merges.emplace_back(tokens_[static_cast<size_t>(left_of(merges[i]))], tokens_[static_cast<size_t>(right_of(merges[i]))]);
  return result;
}

}  // namespace

TrainedVocabulary train_bpe(const WordCounts& counts, const TrainerOptions& options, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t least = (options.initial_alphabet ? 256 : 0) + static_cast<int64_t>(options.special_tokens.size());
  if (options.vocab_size < least || options.vocab_size > INT32_MAX)
    throw ConfigError(Complaint{.where = "vocabulary size",
                                .found = std::to_string(options.vocab_size),
                                .expected = "at least " + std::to_string(least) + ": the alphabet and the special tokens",
                                .hint = ""});
  return Merger(counts, options).run(progress);
}

}  // namespace dz::text
