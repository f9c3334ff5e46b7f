// Byte-level BPE: text to ids and back, read from a tokenizer.json of the `tokenizers` library; ids are equal to that library's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dz::text {

struct TokenizerModel;

// What becomes of "<|endoftext|>" and its like when they stand in the text: one id, or ordinary text.
// Added tokens that are not marked special are one id in either case, as in the library (`encode_special_tokens`).
enum class SpecialTokens { kParsed, kLiteral };

// Immutable and cheap to copy; any number of threads may use one.
class Tokenizer {
 public:
  // InputError when the file is missing; DataError, naming path and key, when it is no tokenizer.json or asks for something that we
  // do not do (docs/tokenizer.md): a part that we ignored would silently give other ids.
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer parse(std::string_view json, const std::string& where);

  int64_t vocab_size() const;         // 1 + the largest id
  const std::string& sha256() const;  // of the JSON text: the identity of the tokenizer in manifests

  // `text` should be UTF-8 (replace_invalid_utf8 makes it so); a byte that is not is one character of its own and survives the round trip.
  // Nothing is added in front or behind. A loop over many texts is faster through an Encoder.
  std::vector<int32_t> encode(std::string_view text) const;           // special tokens parsed: prompts, chat templates
  std::vector<int32_t> encode_ordinary(std::string_view text) const;  // special tokens literal: data

  // The bytes of the tokens, joined, with U+FFFD for each maximal part that is not UTF-8. Ids without a token vanish.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
  std::string decode_bytes(std::span<const int32_t> ids, bool skip_special = false) const;  // the same before U+FFFD
  std::string_view token_bytes(int32_t id) const;                                           // empty for an id without a token

  // What the file's post-processor template puts around a text; encode does not.
  const std::vector<int32_t>& template_in_front() const;
  const std::vector<int32_t>& template_behind() const;

  std::optional<int32_t> find_added(std::string_view content) const;  // an added token by its text
  bool is_special(int32_t id) const;
  int32_t end_of_text() const;                      // "<|endoftext|>"; DataError when the tokenizer has none
  std::vector<std::string> special_tokens() const;  // texts, by id
  const TokenizerModel& model() const { return *model_; }

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}
  std::shared_ptr<const TokenizerModel> model_;
};

// The bytes [begin, end) of the input that a token stands for.
struct Span {
  int64_t begin;
  int64_t end;
  friend bool operator==(const Span&, const Span&) = default;
};

// Encodes many texts: keeps bounded caches of pieces (1 MB). One a thread; the results do not depend on what was encoded before.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  Encoder(Encoder&&) noexcept;
  ~Encoder();

  // Appends the ids of `text` to `ids`. DataError when the file has a pattern of its own that passes a limit on this text (regex.h).
  void encode(std::string_view text, SpecialTokens special, std::vector<int32_t>& ids);

  // Also appends the place of each id. Spans do not decrease, and tile the text but for what the tokenizer drops: pieces that a split removes, bytes
  // without a token. A token of a part of a character has those bytes; where NFC changed some bytes, the first token there has them all and the
  // others have none; spaces that a token takes along (lstrip, rstrip) are its own, and a space that is put in front has no bytes.
  void encode(std::string_view text, SpecialTokens special, std::vector<int32_t>& ids, std::vector<Span>& spans);

 private:
  struct State;
  Tokenizer tokenizer_;
  std::unique_ptr<State> state_;
};

}  // namespace dz::text
