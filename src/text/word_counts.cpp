// Counting pieces: one flat table over one arena of bytes, because a corpus has millions of pieces and few distinct ones.
#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "text/splitter.h"
#include "text/trainer.h"

namespace dz::text {

struct WordCounts::Table {
  struct Slot {
    uint64_t hash = 0;
    int64_t begin = 0;  // into bytes
    int64_t size = 0;
    int64_t count = 0;  // 0: free
  };
  std::vector<Slot> slots = std::vector<Slot>(1 << 12);
  std::string bytes;
  int64_t distinct = 0;

  std::string_view word(const Slot& slot) const {
    return std::string_view(bytes).substr(static_cast<size_t>(slot.begin), static_cast<size_t>(slot.size));
  }

  void add(std::string_view piece, int64_t count) {
    const uint64_t hash = xxh3_64(std::as_bytes(std::span(piece.data(), piece.size())));
    const size_t mask = slots.size() - 1;
    size_t i = hash & mask;
    while (slots[i].count && !(slots[i].hash == hash && word(slots[i]) == piece)) i = (i + 1) & mask;
    if (slots[i].count) {
      slots[i].count += count;
      return;
    }
    slots[i] = {hash, static_cast<int64_t>(bytes.size()), static_cast<int64_t>(piece.size()), count};
    bytes += piece;
    if (++distinct * 2 > static_cast<int64_t>(slots.size())) grow();
  }

  void grow() {
    std::vector<Slot> larger(slots.size() * 4);
    const size_t mask = larger.size() - 1;
    for (const Slot& slot : slots) {
      if (!slot.count) continue;
      size_t i = slot.hash & mask;
      while (larger[i].count) i = (i + 1) & mask;
      larger[i] = slot;
    }
    slots = std::move(larger);
  }
};

WordCounts::WordCounts() : table_(std::make_unique<Table>()) {}
WordCounts::WordCounts(WordCounts&&) noexcept = default;
WordCounts& WordCounts::operator=(WordCounts&&) noexcept = default;
WordCounts::~WordCounts() = default;

void WordCounts::add_text(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(Pattern::kCl100k, text, begin);
    table_->add(text.substr(begin, end - begin), 1);
    begin = end;
  }
}

void WordCounts::add_lines(std::string_view text) {
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
    add_text(text.substr(0, size));
    text.remove_prefix(size);
  }
}

void WordCounts::merge(const WordCounts& other) {
  for (const Table::Slot& slot : other.table_->slots)
    if (slot.count) table_->add(other.table_->word(slot), slot.count);
}

int64_t WordCounts::distinct() const { return table_->distinct; }

std::vector<std::pair<std::string, int64_t>> WordCounts::sorted() const {
  std::vector<std::pair<std::string, int64_t>> words;
  words.reserve(static_cast<size_t>(table_->distinct));
  for (const Table::Slot& slot : table_->slots)
    if (slot.count) words.emplace_back(table_->word(slot), slot.count);
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace dz::text
