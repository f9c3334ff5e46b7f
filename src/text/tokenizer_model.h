// What a tokenizer.json says, in the form that encoding and decoding want. Internal to this room.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"
#include "text/splitter.h"

namespace dz::text {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;
};

// Finds the leftmost added token in a text, of those that start there the longest.
class AddedMatcher {
 public:
  void add(const AddedToken& token);  // an empty content is never found
  struct Match {
    size_t begin;
    const AddedToken* token;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;
  bool empty() const { return empty_; }

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // longest first
  bool empty_ = true;
};

struct TokenizerModel {
  std::string where;
  std::string sha256;
  Pattern pattern = Pattern::kCl100k;
  std::array<int32_t, 256> byte_ids{};  // -1: a byte outside the alphabet, dropped by the encoder as in the library
  MergeTable merges;
  bool ignore_merges = false;                             // a piece that is a token is that token, whatever the merges say
  std::unordered_map<std::string, int32_t> whole_pieces;  // only with ignore_merges
  std::string token_bytes;                                // of all tokens, one after another
  std::vector<int64_t> token_begins;                      // vocab_size + 1
  std::vector<bool> special;                              // vocab_size
  std::vector<AddedToken> added;                          // by id
  AddedMatcher raw_matcher;                               // tokens searched in the text as it is,
  AddedMatcher normalized_matcher;                        // and then those that a normalizer would come before (there is none)

  int64_t vocab_size() const { return static_cast<int64_t>(special.size()); }
};

TokenizerModel parse_tokenizer_json(std::string_view json, const std::string& where);

}  // namespace dz::text
