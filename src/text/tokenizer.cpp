#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "text/tokenizer_model.h"
#include "text/unicode.h"

namespace dz::text {

Tokenizer Tokenizer::load(const std::filesystem::path& path) { return parse(read_file(path), path.string()); }

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where) {
  return Tokenizer(std::make_shared<const TokenizerModel>(parse_tokenizer_json(json, where)));
}

int64_t Tokenizer::vocab_size() const { return model_->vocab_size(); }
const std::string& Tokenizer::sha256() const { return model_->sha256; }

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  Encoder(*this).encode(text, SpecialTokens::kParsed, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_ordinary(std::string_view text) const {
  std::vector<int32_t> ids;
  Encoder(*this).encode(text, SpecialTokens::kLiteral, ids);
  return ids;
}

std::string Tokenizer::decode_bytes(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids)
    if (!skip_special || !is_special(id)) bytes += token_bytes(id);
  return bytes;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text = decode_bytes(ids, skip_special);
  replace_invalid_utf8(text);
  return text;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const auto begin = static_cast<size_t>(model_->token_begins[static_cast<size_t>(id)]);
  const auto end = static_cast<size_t>(model_->token_begins[static_cast<size_t>(id) + 1]);
  return std::string_view(model_->token_bytes).substr(begin, end - begin);
}

std::optional<int32_t> Tokenizer::find_added(std::string_view content) const {
  for (const AddedToken& token : model_->added)
    if (token.content == content) return token.id;
  return std::nullopt;
}

bool Tokenizer::is_special(int32_t id) const { return id >= 0 && id < vocab_size() && model_->special[static_cast<size_t>(id)]; }

int32_t Tokenizer::end_of_text() const {
  if (const std::optional<int32_t> id = find_added("<|endoftext|>")) return *id;
  throw DataError(
      Complaint{.where = model_->where + ": added_tokens", .found = "no <|endoftext|>", .expected = "the token that ends a document", .hint = ""});
}

std::vector<std::string> Tokenizer::special_tokens() const {
  std::vector<std::string> contents;
  for (const AddedToken& token : model_->added)
    if (token.special) contents.push_back(token.content);
  return contents;
}

// Short pieces and their ids, each in the one slot that its hash names: a newer piece replaces an older one, so that memory is bounded.
struct Encoder::Cache {
  static constexpr size_t kSlots = 1 << 15;
  static constexpr size_t kBytes = 31;
  static constexpr size_t kIds = 16;
  struct Slot {
    uint8_t size = 0;
    char bytes[kBytes];
    uint8_t count = 0;
    std::array<int32_t, kIds> ids;
  };
  static constexpr int kPatience = 256;  // pieces until the slots are worth their memory: a prompt does without
  int seen = 0;
  std::vector<Slot> slots;
  std::vector<int32_t> symbols;  // scratch

  // Null when the piece is too long.
  Slot* slot(std::string_view piece) {
    if (piece.size() > kBytes) return nullptr;
    if (slots.empty()) {
      if (++seen < kPatience) return nullptr;
      slots.resize(kSlots);
    }
    const uint64_t hash = xxh3_64(std::as_bytes(std::span(piece.data(), piece.size())));
    return &slots[hash % kSlots];
  }
};

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer), cache_(std::make_unique<Cache>()) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

namespace {

// Calls `ordinary` for the text between added tokens and `found` for their ids. A special token that is to be literal still ends
// the search there, as in the library; the text around it stays in one piece.
template <class Ordinary, class Found>
void cut(const AddedMatcher& matcher, std::string_view text, SpecialTokens special, Ordinary&& ordinary, Found&& found) {
  size_t begin = 0;
  size_t from = 0;
  while (const auto match = matcher.find(text, from)) {
    from = match->begin + match->token->content.size();
    if (match->token->special && special == SpecialTokens::kLiteral) continue;
    if (match->begin > begin) ordinary(text.substr(begin, match->begin - begin));
    found(match->token->id);
    begin = from;
  }
  if (begin < text.size()) ordinary(text.substr(begin));
}

void merge_piece(const TokenizerModel& model, std::string_view piece, std::vector<int32_t>& symbols) {
  symbols.clear();
  if (model.ignore_merges) {
    const auto whole = model.whole_pieces.find(std::string(piece));
    if (whole != model.whole_pieces.end()) return symbols.push_back(whole->second);
  }
  for (const char byte : piece) {
    const int32_t id = model.byte_ids[static_cast<unsigned char>(byte)];
    if (id >= 0) symbols.push_back(id);
  }
  apply_merges(model.merges, symbols);
}

}  // namespace

void Encoder::encode(std::string_view text, SpecialTokens special, std::vector<int32_t>& ids) {
  const TokenizerModel& model = tokenizer_.model();
  const auto found = [&](int32_t id) { ids.push_back(id); };
  cut(
      model.raw_matcher, text, special,
      [&](std::string_view part) {
        cut(
            model.normalized_matcher, part, special, [&](std::string_view segment) { encode_segment(segment, ids); }, found);
      },
      found);
}

void Encoder::encode_segment(std::string_view text, std::vector<int32_t>& ids) {
  const TokenizerModel& model = tokenizer_.model();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(model.pattern, text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    begin = end;
    Cache::Slot* slot = cache_->slot(piece);
    if (slot && slot->size == piece.size() && std::memcmp(slot->bytes, piece.data(), piece.size()) == 0) {
      ids.insert(ids.end(), slot->ids.begin(), slot->ids.begin() + slot->count);
      continue;
    }
    std::vector<int32_t>& symbols = cache_->symbols;
    merge_piece(model, piece, symbols);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    if (!slot || symbols.size() > Cache::kIds) continue;
    slot->size = static_cast<uint8_t>(piece.size());
    std::memcpy(slot->bytes, piece.data(), piece.size());
    slot->count = static_cast<uint8_t>(symbols.size());
    std::copy(symbols.begin(), symbols.end(), slot->ids.begin());
  }
}

}  // namespace dz::text
