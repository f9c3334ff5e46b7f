#include "data/fingerprint.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace dz::data {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<int64_t> id_or_none(int64_t id) { return id < 0 ? std::nullopt : std::optional(id); }

}  // namespace

std::string olmo_core_fingerprint(std::string_view class_name, const FingerprintFields& fields, std::span<const FingerprintFile> files) {
  Sha256 hash;
  hash.update(fmt::format("class={}", class_name));
  for (const auto& [name, value] : fields) hash.update(fmt::format("{}={},", name, value));
  for (const FingerprintFile& file : files) hash.update(fmt::format("path={},size={},", base_name(file.path), file.size));
  return hash.hex();
}

std::string python_value(std::optional<int64_t> value) { return value ? std::to_string(*value) : "None"; }

std::string python_dtype(TokenType type) { return fmt::format("<class 'numpy.{}'>", name_of(type)); }

FingerprintFields common_fields(const Vocabulary& vocabulary, TokenType type) {
  return {{"vocab_size", std::to_string(vocabulary.size)},
          {"pad_token_id", python_value(id_or_none(vocabulary.pad_id))},
          {"eos_token_id", python_value(id_or_none(vocabulary.eos_id))},
          {"dtype", python_dtype(type)}};
}

FingerprintFields fixed_fields(const Vocabulary& vocabulary, TokenType type, int64_t target_length) {
  FingerprintFields fields = common_fields(vocabulary, type);
  fields.emplace_back("max_target_sequence_length", python_value(target_length > 0 ? std::optional(target_length) : std::nullopt));
  fields.emplace_back("bos_token_id", python_value(id_or_none(vocabulary.bos_id)));
  return fields;
}

std::vector<FingerprintFile> fingerprint_files(const TokenStore& store) {
  std::vector<FingerprintFile> files;
  for (const TokenEntry& entry : store.entries()) files.push_back({.path = entry.name, .size = entry.bytes});
  return files;
}

std::string maxtext_fingerprint(int64_t sequence_length, std::string_view dtype, std::string_view tokenizer, std::span<const FingerprintFile> files) {
  constexpr std::string_view kZero("\0", 1);
  Sha256 hash;
  const auto put = [&](std::string_view text) {
    hash.update(text);
    hash.update(kZero);
  };
  put("1");
  put(std::to_string(sequence_length));
  put(dtype);
  put(tokenizer);
  for (const FingerprintFile& file : files) {
    put(file.path);
    put(std::to_string(file.size));
  }
  return "sha256:" + hash.hex();
}

}  // namespace dz::data
