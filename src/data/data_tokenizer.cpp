#include "data/data_tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "text/tokenizer.h"

namespace dz::data {

void check_tokenizer(const std::string& json, const std::string& where, int64_t vocab_size) {
  const int64_t size = text::Tokenizer::parse(json, where).vocab_size();
  if (size <= vocab_size) return;
  throw ConfigError(Complaint{.where = where,
                              .found = fmt::format("a tokenizer with ids up to {}", size - 1),
                              .expected = fmt::format("ids below the vocabulary size {}", vocab_size),
                              .hint = "give the tokenizer that made the tokens"});
}

DataTokenizer tokenizer_of(const TokenShards& shards) {
  const fs::path path = shards.directory() / "tokenizer.json";
  const std::string& named = shards.manifest().tokenizer_sha256;
  DataTokenizer tokenizer;
  if (!fs::exists(path)) {
    if (!named.empty())
      tokenizer.note = fmt::format("{}: not there, though the manifest names it; checkpoints go without a tokenizer", path.string());
    return tokenizer;
  }
  tokenizer.json = read_file(path);
  const std::string found = sha256_hex(tokenizer.json);
  if (named.empty()) {
    check_tokenizer(tokenizer.json, path.string(), shards.manifest().vocab_size);
  } else if (found != named) {
    throw DataError(Complaint{.where = path.string(),
                              .found = "a file with SHA-256 " + found,
                              .expected = fmt::format("{}, the tokenizer_sha256 of manifest.json", named),
                              .hint = "put back the tokenizer that made these tokens, or remove the file to train without one"});
  }
  return tokenizer;
}

}  // namespace dz::data
