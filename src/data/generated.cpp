#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/dataset.h"
#include "numerics/philox.h"

namespace dz::data {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 28;  // a gigabyte in memory

[[noreturn]] void refuse(const char* key, int64_t found, const std::string& expected) {
  throw ConfigError(Complaint{.where = key, .found = std::to_string(found), .expected = expected, .hint = ""});
}

// Where documents end (exclusive): each has at least one token and its EOS; the rest is shared out by random weights from 1 to 16.
std::vector<int64_t> document_ends(const GeneratedSettings& settings, uint64_t seed) {
  const numerics::RandomStream lengths(seed, "generated data, lengths");
  std::vector<int64_t> weights(static_cast<size_t>(settings.documents));
  int64_t total = 0;
  for (size_t i = 0; i < weights.size(); ++i) total += weights[i] = 1 + static_cast<int64_t>(lengths.bits(i) % 16);
  const int64_t spare = settings.tokens - 2 * settings.documents;
  std::vector<int64_t> ends;
  int64_t sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];  // spare * sum stays below 2^28 * 2^32
    ends.push_back(2 * static_cast<int64_t>(i + 1) + spare * sum / total);
  }
  return ends;
}

class GeneratedDataset : public Dataset {
 public:
  GeneratedDataset(const GeneratedSettings& settings, int64_t vocab_size, int64_t eos_id, uint64_t seed, int64_t sequence_length) {
    sequence_length_ = sequence_length;
    vocabulary_ = {.size = vocab_size, .eos_id = eos_id};
    instances_ = settings.tokens / sequence_length;
    sources_ = {{.name = "generated",
                 .first = 0,
                 .instances = instances_,
                 .tokens = settings.tokens,
                 .dropped = settings.tokens - instances_ * sequence_length}};
    tokens_.reserve(static_cast<size_t>(settings.tokens));
    const numerics::RandomStream draws(seed, "generated data, tokens"), successors(seed, "generated data, successors");
    for (const int64_t end : document_ends(settings, seed)) {
      int32_t token = word(draws.bits(tokens_.size()) >> 8);
      while (static_cast<int64_t>(tokens_.size()) < end - 1) {
        tokens_.push_back(token);
        const uint64_t draw = draws.bits(tokens_.size());
        // Of sixteen draws ten take the first successor of the token, four the second, one the third, one any word.
        const uint64_t choice = draw % 16;
        const uint64_t which = choice < 10 ? 0 : choice < 14 ? 1 : 2;
        token = word(choice == 15 ? draw >> 8 : successors.bits(static_cast<uint64_t>(token) * 3 + which));
      }
      tokens_.push_back(static_cast<int32_t>(eos_id));
    }
  }

  void read(int64_t instance, Row& row) const override {
    DZ_CHECK(instance >= 0 && instance < instances_ && static_cast<int64_t>(row.tokens.size()) == sequence_length_, "instance", instance, "size",
             row.tokens.size());
    std::copy_n(tokens_.begin() + instance * sequence_length_, sequence_length_, row.tokens.begin());
  }

  std::string digest() const override {
    Sha256 hash;
    hash.update(fmt::format("generated\nvocab {}\neos {}\n", vocab_size(), eos_id()));
    hash.update(std::as_bytes(std::span(tokens_)));
    return hash.hex();
  }

 private:
  // Any id but EOS.
  int32_t word(uint64_t random) const {
    const auto id = static_cast<int64_t>(random % static_cast<uint64_t>(vocab_size() - 1));
    return static_cast<int32_t>(id < eos_id() ? id : id + 1);
  }

  std::vector<int32_t> tokens_;
};

}  // namespace

std::shared_ptr<const Dataset> generated_dataset(const GeneratedSettings& settings, int64_t vocab_size, int64_t eos_id, uint64_t seed,
                                                 int64_t sequence_length) {
  if (vocab_size < 2 || vocab_size > int64_t{1} << 31) refuse("recipe.model.vocab_size", vocab_size, "2 to 2^31");
  if (eos_id < 0 || eos_id >= vocab_size) refuse("recipe.data.generated.eos_id", eos_id, fmt::format("0 to {}", vocab_size - 1));
  if (sequence_length < 2) refuse("recipe.data.sequence_length", sequence_length, "at least 2 tokens, so that one has a target");
  if (settings.tokens < 2 || settings.tokens > kMostTokens)
    refuse("recipe.data.generated.tokens", settings.tokens, fmt::format("2 to {}", kMostTokens));
  if (settings.documents < 1 || settings.documents > settings.tokens / 2)
    refuse("recipe.data.generated.documents", settings.documents, fmt::format("1 to {}, half the tokens", settings.tokens / 2));
  if (sequence_length > settings.tokens)
    refuse("recipe.data.sequence_length", sequence_length, fmt::format("at most {}, the generated tokens", settings.tokens));
  return std::make_shared<GeneratedDataset>(settings, vocab_size, eos_id, seed, sequence_length);
}

}  // namespace dz::data
