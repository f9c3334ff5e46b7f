// Text to ids: added tokens, normaliser, pieces, merges. The quick way is a piece of up to 15 bytes that a cache or the vocabulary knows.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/hash.h"
#include "text/nfc.h"
#include "text/tokenizer.h"
#include "text/tokenizer_model.h"

namespace dz::text {
namespace {

// Longer pieces and their ids, as PieceCache keeps short ones.
class LongPieceCache {
 public:
  static constexpr size_t kBytes = 63;
  static constexpr size_t kIds = 24;
  struct Slot {
    uint8_t size = 0;
    uint8_t count = 0;
    char bytes[kBytes];
    std::array<int32_t, kIds> ids;
    bool holds(std::string_view piece) const { return size == piece.size() && std::memcmp(bytes, piece.data(), size) == 0; }
  };

  // Null when the piece is too long.
  Slot* slot(std::string_view piece) {
    if (piece.size() > kBytes) return nullptr;
    return &slots_[xxh3_64(std::as_bytes(std::span(piece.data(), piece.size()))) % kSlots];
  }

 private:
  static constexpr size_t kSlots = 1 << 11;
  std::vector<Slot> slots_{kSlots};
};

}  // namespace

void merge_piece(const TokenizerModel& model, std::string_view piece, std::vector<int32_t>& symbols) {
  symbols.clear();
  for (const char byte : piece) {
    const int32_t id = model.byte_ids[static_cast<unsigned char>(byte)];
    if (id >= 0) symbols.push_back(id);
  }
  apply_merges(model.merges, symbols);
}

struct Encoder::State {
  static constexpr int kPatience = 256;  // pieces until the caches are worth their memory: a prompt does without

  explicit State(const TokenizerModel& of) : model(of), plain(of.pipeline.pre_tokenizer.plain()) {}

  void encode(std::string_view text, SpecialTokens special);
  void encode_part(std::string_view text, size_t offset, bool literal);
  void encode_segment(std::string_view text, size_t offset);
  void encode_pieces(Pattern pattern, std::string_view text);
  void encode_piece(std::string_view piece, const char* text_end);
  void encode_short(std::string_view piece, const PieceKey& key);
  void encode_long(std::string_view piece);

  void add_token(int32_t id, size_t begin, size_t end);
  void add_spans(std::string_view piece, size_t begin, size_t first_id);
  void add_span(size_t begin, size_t end);

  const TokenizerModel& model;
  std::optional<Pattern> plain;

  // Of the present call. A place in a segment leads back to the input over the space in front of it, the segment's begin in its part, what the
  // normaliser changed in the part, and the part's begin.
  std::vector<int32_t>* ids = nullptr;
  std::vector<Span>* spans = nullptr;
  size_t first_span = 0;  // of this text
  size_t part_begin = 0;
  const Edits* edits = nullptr;
  size_t segment_begin = 0;
  size_t prefix = 0;  // 1 when the segment has a space in front that the input has not

  int seen = 0;
  std::unique_ptr<PieceCache> cache;
  std::unique_ptr<LongPieceCache> long_cache;
  std::vector<int32_t> symbols;
  std::string normal;
  Edits normal_edits;
  std::string prefixed;
  SplitScratch split;
};

void Encoder::State::encode(std::string_view text, SpecialTokens special) {
  const bool literal = special == SpecialTokens::kLiteral;
  part_begin = 0;
  edits = nullptr;
  prefix = 0;  // a text that was refused midway leaves nothing behind
  cut_at_added(
      model.raw_matcher, text, literal, [&](size_t begin, size_t end) { encode_part(text.substr(begin, end - begin), begin, literal); },
      [&](size_t begin, size_t end, const AddedToken& token) {
        part_begin = 0;
        edits = nullptr;
        add_token(token.id, begin, end);
      });
}

// Between added tokens that stand in the text itself.
void Encoder::State::encode_part(std::string_view text, size_t offset, bool literal) {
  part_begin = offset;
  const bool changed = model.pipeline.nfc && normalize_nfc(text, normal, normal_edits);
  if (changed) text = normal;
  edits = changed ? &normal_edits : nullptr;
  cut_at_added(
      model.normalized_matcher, text, literal, [&](size_t begin, size_t end) { encode_segment(text.substr(begin, end - begin), begin); },
      [&](size_t begin, size_t end, const AddedToken& token) { add_token(token.id, begin, end); });
}

// Between added tokens of both kinds.
void Encoder::State::encode_segment(std::string_view text, size_t offset) {
  segment_begin = offset;
  if (plain) return encode_pieces(*plain, text);
  const PreTokenizer& steps = model.pipeline.pre_tokenizer;
  split_text(steps, text, split);
  for (const TextMatch& part : split.now) {
    std::string_view piece = text.substr(part.begin, part.end - part.begin);
    segment_begin = offset + part.begin;
    if (steps.prefix_space && piece[0] != ' ') {
      prefixed.assign(1, ' ').append(piece);
      piece = prefixed;
      prefix = 1;
    }
    if (steps.last) {
      encode_pieces(*steps.last, piece);
    } else {
      const size_t first = ids->size();
      encode_piece(piece, piece.data() + piece.size());
      if (spans) add_spans(piece, 0, first);
    }
    prefix = 0;
  }
}

void Encoder::State::encode_pieces(Pattern pattern, std::string_view text) {
  const char* const text_end = text.data() + text.size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(pattern, text, begin);
    const size_t first = ids->size();
    const std::string_view piece = text.substr(begin, end - begin);
    encode_piece(piece, text_end);
    if (spans) add_spans(piece, begin, first);
    begin = end;
  }
}

void Encoder::State::encode_piece(std::string_view piece, const char* text_end) {
  if (piece.size() > PieceKey::kMaxSize) return encode_long(piece);
  const PieceKey key = piece_key(piece.data(), piece.size(), text_end);
  if (cache) {
    const PieceCache::Slot& slot = cache->slot(key);
    if (slot.key == key) {
      ids->insert(ids->end(), slot.ids, slot.ids + slot.count);
      return;
    }
  }
  encode_short(piece, key);
}

void Encoder::State::encode_short(std::string_view piece, const PieceKey& key) {
  const int32_t whole = model.whole_pieces.find(key);
  if (whole >= 0)
    symbols.assign(1, whole);
  else
    merge_piece(model, piece, symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
  if (!cache) {
    if (++seen < kPatience) return;
    cache = std::make_unique<PieceCache>();
    long_cache = std::make_unique<LongPieceCache>();
  }
  if (symbols.size() > PieceCache::kMaxIds) return;
  PieceCache::Slot& slot = cache->slot(key);
  slot.key = key;
  slot.count = static_cast<int32_t>(symbols.size());
  std::copy(symbols.begin(), symbols.end(), slot.ids);
}

void Encoder::State::encode_long(std::string_view piece) {
  LongPieceCache::Slot* slot = long_cache ? long_cache->slot(piece) : nullptr;
  if (slot && slot->holds(piece)) {
    ids->insert(ids->end(), slot->ids.begin(), slot->ids.begin() + slot->count);
    return;
  }
  const auto whole = model.whole_longer.find(piece);
  if (whole != model.whole_longer.end())
    symbols.assign(1, whole->second);
  else
    merge_piece(model, piece, symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
  if (!slot || symbols.size() > LongPieceCache::kIds) return;
  slot->size = static_cast<uint8_t>(piece.size());
  slot->count = static_cast<uint8_t>(symbols.size());
  std::memcpy(slot->bytes, piece.data(), piece.size());
  std::copy(symbols.begin(), symbols.end(), slot->ids.begin());
}

void Encoder::State::add_token(int32_t id, size_t begin, size_t end) {
  ids->push_back(id);
  if (spans) add_span(begin, end);
}

// The ids from `first_id` on are those of `piece`: each stands for as many bytes as its token has, of those that have one.
void Encoder::State::add_spans(std::string_view piece, size_t begin, size_t first_id) {
  const auto dropped = [&](size_t at) { return model.drops_bytes && at < piece.size() && model.byte_ids[static_cast<unsigned char>(piece[at])] < 0; };
  const auto place = [&](size_t at) { return segment_begin + (begin + at < prefix ? 0 : begin + at - prefix); };
  size_t at = 0;
  for (size_t i = first_id; i < ids->size(); ++i) {
    while (dropped(at)) ++at;
    const size_t first = at;
    for (size_t left = model.bytes_of((*ids)[i]).size(); left > 0; --left) {
      while (dropped(at)) ++at;
      ++at;
    }
    add_span(place(first), place(at));
  }
}

void Encoder::State::add_span(size_t begin, size_t end) {
  const auto origin = [&](size_t position) { return static_cast<int64_t>(part_begin + (edits ? edits->origin(position) : position)); };
  const int64_t least = spans->size() == first_span ? 0 : spans->back().end;
  const int64_t first = std::max(origin(begin), least);
  spans->push_back({first, std::max(origin(end), first)});
}

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer), state_(std::make_unique<State>(tokenizer_.model())) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

namespace {

// The caller's ids, on this thread's stack while they grow: callers keep such vectors side by side, and threads that move the ends of
// neighbours would take a cache line from each other at every token.
struct Borrowed {
  explicit Borrowed(std::vector<int32_t>& ids) : theirs(ids), own(std::move(ids)) {}
  ~Borrowed() { theirs = std::move(own); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  std::vector<int32_t>& theirs;
  std::vector<int32_t> own;
};

}  // namespace

void Encoder::encode(std::string_view text, SpecialTokens special, std::vector<int32_t>& ids) {
  Borrowed borrowed(ids);
  state_->ids = &borrowed.own;
  state_->spans = nullptr;
  state_->encode(text, special);
}

void Encoder::encode(std::string_view text, SpecialTokens special, std::vector<int32_t>& ids, std::vector<Span>& spans) {
  Borrowed borrowed(ids);
  state_->ids = &borrowed.own;
  state_->spans = &spans;
  state_->first_span = spans.size();
  state_->encode(text, special);
}

}  // namespace dz::text
