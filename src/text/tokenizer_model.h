// What a tokenizer.json says, in the form that encoding and decoding want. Internal to this room.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pieces.h"
#include "text/pipeline.h"

namespace dz::text {

struct TokenizerModel {
  std::string where;
  std::string sha256;
  Pipeline pipeline;
  std::array<int32_t, 256> byte_ids{};  // -1: a byte outside the alphabet, dropped by the encoder as in the library
  bool drops_bytes = false;
  MergeTable merges;
  // Pieces that are one token: with ignore_merges all that are in the vocabulary, else those that the merges lead to. Where a piece is in neither,
  // the merges decide.
  WholePieces whole_pieces;                                    // of up to 15 bytes
  std::unordered_map<std::string_view, int32_t> whole_longer;  // with ignore_merges; views of token_bytes
  std::string token_bytes;                                     // of all tokens, one after another
  std::vector<int64_t> token_begins;                           // vocab_size + 1
  std::vector<bool> special;                                   // vocab_size
  std::vector<AddedToken> added;                               // by id
  AddedMatcher raw_matcher;                                    // tokens searched in the text as it is,
  AddedMatcher normalized_matcher;                             // and then those that the normalizer comes before

  int64_t vocab_size() const { return static_cast<int64_t>(special.size()); }
  std::string_view bytes_of(int32_t id) const {  // of an id below vocab_size
    const auto begin = static_cast<size_t>(token_begins[static_cast<size_t>(id)]);
    return std::string_view(token_bytes).substr(begin, static_cast<size_t>(token_begins[static_cast<size_t>(id) + 1]) - begin);
  }
};

TokenizerModel parse_tokenizer_json(std::string_view json, const std::string& where);

// Ids of one piece by its merges alone.
void merge_piece(const TokenizerModel& model, std::string_view piece, std::vector<int32_t>& symbols);

}  // namespace dz::text
