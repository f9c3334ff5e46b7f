// The data of a recipe: its tokens opened, cut into instances, put in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/bare_store.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/token_shards.h"
#include "train/recipe.h"

namespace dz {
class ThreadPool;
}

namespace dz::train {

struct TrainingData {
  std::shared_ptr<const data::TokenShards> shards;  // null unless recipe.data.source is shards
  std::shared_ptr<const data::TokenStore> store;    // null when the tokens are computed
  std::shared_ptr<const data::Dataset> dataset;
  std::shared_ptr<const data::Order> order;
  std::string manifest_json;       // what a later resume compares file by file; empty when computed
  std::string tokenizer_json;      // of the tokens, when there is one
  std::vector<std::string> notes;  // what a person should know: files that are odd, sources that give nothing
};

struct OpenDataOptions {
  fs::path cache;              // keeps hashes of token files and packings; empty: nowhere
  bool override_data = false;  // a loader state of other data is taken all the same
};

// Opens what recipe.data names; hashes bare files that the cache does not know. Sets the model's EOS, and skip_batches in place of a
// loader state.
// InputError, DataError, ConfigError naming recipe.data.KEY or the file.
TrainingData open_data(Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool);

// Every byte against its hash, every id against the vocabulary.
void verify(const TrainingData& data, ThreadPool& pool);

// One line for each thing in which the data now differs from the data of a run (`manifest_json` of then); empty when nothing does.
std::vector<std::string> data_differences(const std::string& then, const TrainingData& now, const std::string& where);

// What the recipe does to a batch after it was read: pad targets masked, sequence-length warm-up; null when nothing. ConfigError when it
// masks padding and the vocabulary has no pad.
data::BatchChange batch_change(const Recipe& recipe, const data::Vocabulary& vocabulary);

}  // namespace dz::train
