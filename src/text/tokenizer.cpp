#include "text/tokenizer.h"

#include "base/error.h"
#include "base/file.h"
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
  return model_->bytes_of(id);
}

const std::vector<int32_t>& Tokenizer::template_in_front() const { return model_->pipeline.in_front; }
const std::vector<int32_t>& Tokenizer::template_behind() const { return model_->pipeline.behind; }

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

}  // namespace dz::text
