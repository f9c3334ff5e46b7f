#include "eval/parity_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "data/bare_store.h"
#include "eval/parity_file.h"
#include "numerics/rope.h"
#include "text/id_lines.h"

namespace dz::eval {
namespace {

std::vector<TokenSequence> of_lines(const fs::path& path) {
  std::vector<TokenSequence> sequences;
  for (std::vector<int32_t>& ids : text::read_id_lines(path)) {
    if (!ids.empty()) sequences.push_back({.name = "S" + std::to_string(sequences.size() + 1), .tokens = std::move(ids)});
  }
  return sequences;
}

std::vector<TokenSequence> of_token_file(const fs::path& path, const TokenFileSettings& settings) {
  const data::BareStore store(
      {.paths = {path.string()}, .type = data::token_type_for(settings.vocab_size), .vocabulary = {.size = settings.vocab_size}});
  std::vector<TokenSequence> sequences;
  const int64_t whole = store.entry(0).tokens / settings.length;
  for (int64_t i = 0; i < std::min(whole, settings.sequences); ++i) {
    TokenSequence& sequence = sequences.emplace_back(TokenSequence{.name = "S" + std::to_string(i + 1)});
    sequence.tokens.resize(static_cast<size_t>(settings.length));
    store.read(0, i * settings.length, sequence.tokens);
  }
  return sequences;
}

std::vector<TokenSequence> of_safetensors(const fs::path& path) {
  constexpr std::string_view kIds = ".input_ids";
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(path);
  std::vector<TokenSequence> sequences;
  for (const checkpoint::StoredTensor& ids : source.tensors()) {
    if (!ids.name.ends_with(kIds)) continue;
    if ((ids.dtype != "I64" && ids.dtype != "I32") || ids.shape.empty() || ids.shape.size() > 2) {
      throw DataError(Complaint{path.string() + ": " + ids.name, ids.dtype + " of " + std::to_string(ids.shape.size()) + " dimensions",
                                "I64 or I32, [tokens] or [instances, tokens]", ""});
    }
    if (ids.elements() == 0) continue;
    TokenSequence& sequence = sequences.emplace_back(
        TokenSequence{.name = ids.name.substr(0, ids.name.size() - kIds.size()), .instances = ids.shape.size() == 2 ? ids.shape[0] : 1});
    for (const int64_t value : read_integers(source, ids))
      sequence.tokens.push_back(value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value));
  }
  return sequences;
}

}  // namespace

std::vector<TokenSequence> read_token_sequences(const fs::path& path, const TokenFileSettings& settings) {
  const fs::path ending = path.extension();
  std::vector<TokenSequence> sequences = ending == ".safetensors" ? of_safetensors(path)
                                         : ending == ".npy"       ? of_token_file(path, settings)
                                                                  : of_lines(path);
  for (const TokenSequence& sequence : sequences) {
    for (size_t i = 0; i < sequence.tokens.size(); ++i) {
      const int32_t id = sequence.tokens[i];
      if (id < 0 || id >= settings.vocab_size) {
        throw DataError(Complaint{path.string() + ": " + sequence.name + ", token " + std::to_string(i), std::to_string(id),
                                  "ids from 0 below the models' vocab_size, " + std::to_string(settings.vocab_size), ""});
      }
    }
    if (sequence.seq() > numerics::kMaxPositions) {
      throw DataError(Complaint{path.string() + ": " + sequence.name, std::to_string(sequence.seq()) + " tokens",
                                "at most " + std::to_string(numerics::kMaxPositions), "cut it into shorter sequences"});
    }
  }
  return sequences;
}

}  // namespace dz::eval
