// Text generation: one token at a time with a cache of keys and values, and the choice of the next token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/parameters.h"

namespace dz {
class ThreadPool;
}

namespace dz::model {

// Remembers the keys and values of one sequence, so that a new token costs one row; a sliding layer only those of its window. The logits are, bit for
// bit, those of a forward pass over the whole sequence: no order of a sum depends on how many rows are computed at once. T: bf16 or float.
template <class T>
class Decoder {
 public:
  // capacity: tokens that fit, prompt and all.
  Decoder(const ModelConfig& config, int64_t capacity, ThreadPool& pool);
  ~Decoder();

  void set_weights(const Parameters& parameters);  // must outlive the use; forgets the sequence
  void reset();                                    // forgets the sequence

  // Appends tokens (at least one; DataError for one beyond the vocabulary, DZ_CHECK for the capacity); the logits [vocab_size] after the
  // last of them, valid until the next call.
  std::span<const float> append(std::span<const int32_t> tokens);

  int64_t length() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Sampling {
  double temperature = 0;  // 0: the largest logit, the lowest token of equals
  int64_t top_k = 0;       // keep so many of the largest logits, and all equal to the last of them; 0: all
  double top_p = 1;        // keep the likeliest tokens that together reach this probability, at least one
  double min_p = 0;        // keep tokens with at least this share of the likeliest one's probability
  uint64_t seed = 0;
};

// ConfigError naming the option when a value makes no sense.
void validate(const Sampling& sampling);

struct Candidate {
  int32_t token = 0;
  double probability = 0;
};

// The tokens that may follow and their probabilities, likeliest first (of equals the highest token); as transformers does it: temperature,
// top-k, top-p, min-p, each on what the one before left, then a softmax. Needs a temperature above 0. Logits of -inf have no part in it.
std::vector<Candidate> candidates(std::span<const float> logits, const Sampling& sampling);

// Continues `prompt` by at most `max_tokens`; a token of `stop` ends the text and is the last one returned.
template <class T>
std::vector<int32_t> generate(Decoder<T>& decoder, std::span<const int32_t> prompt, int64_t max_tokens, const Sampling& sampling,
                              std::span<const int32_t> stop);

// The token number `index` of a sequence: a pure function of logits, sampling and index. DataError when a logit is NaN.
int32_t choose(std::span<const float> logits, const Sampling& sampling, uint64_t index);

}  // namespace dz::model
