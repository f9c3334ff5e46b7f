// recipe.data: which tokens, cut into which instances, in which order. Every key is part of a run's identity but paths, in whose place the
// digest of what they lead to stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/fields.h"

namespace dz::train {

enum class DataSource : uint8_t { kShards, kFiles, kMix, kMixture, kGenerated };
enum class DataKind : uint8_t { kFixed, kPadded, kPacked, kInterleaved, kVsl };

// What bare token files do not say themselves.
struct TokenFormat {
  int64_t vocab_size = 0;
  int64_t eos_id = -1, pad_id = -1, bos_id = -1;
  std::string tokenizer;  // a tokenizer.json that the checkpoints carry; may be empty
};

struct MixRecipe {
  std::string file;       // of AI2: label,path a line
  std::string name;       // decides which folder {TOKENIZER} stands for
  std::string tokenizer;  // identifier, as in allenai/dolma2-tokenizer
  std::string base_dir;   // in front of every path
};

struct OrderRecipe {
  std::string dialect = "keyed";  // keyed | olmo-core | maxtext
  bool shuffle = true;
  int64_t hosts = 1, workers = 0;  // virtual, of the maxtext dialect: its batches depend on them
  int64_t skip_batches = 0;        // batches of the order that the run begins behind
  std::string index;               // MaxText's index of the data: its fingerprint is what a Grain state names
  std::vector<std::string> state;  // a loader state of OLMo-core, or Grain's, one a host; fills skip_batches
};

struct FilterRecipe {
  int64_t count = 0;                  // instances that repeat an n-gram so often lose their targets; 0: off (OLMo-core: 32)
  int64_t periods = 13;               // n-grams of 1 to so many tokens
  std::string dialect = "olmo-core";  // olmo-core | maxtext
};

struct DocumentRecipe {
  std::string boundaries = "eos";           // eos | csv; none stands in a file for document_masks: false
  std::string long_documents = "truncate";  // truncate | fragment
  bool keep_tail = false;                   // tokens behind the last EOS are a document
};

struct PackingRecipe {
  std::string dialect = "stable";  // stable | olmo-core
  int64_t group_size = 1;          // files packed together
  std::string olmo_core_caches;    // a work directory of OLMo-core whose packings are followed
};

struct InterleavedRecipe {
  int64_t documents = 2, chunks = 2;  // of an instance; of a document
  std::vector<std::string> exempt;    // files whose documents are not permuted
};

struct VslRecipe {
  int64_t min_length = 256;
  std::string curriculum = "natural";  // natural | grow-p2 | grow-linear
  int64_t cycles = 8;
  bool balanced = false;
};

// Lengths and batch sizes that change on the way: "STEP:VALUE", from that step on.
struct WarmUpRecipe {
  std::string mode = "truncate";  // truncate | split
  std::vector<std::string> sequence_length, batch;
};

struct DataRecipe {
  DataSource source = DataSource::kShards;
  std::string shards;              // directory written by `deltazero tokenize`
  std::vector<std::string> files;  // bare token files; * and ? match anything
  std::vector<std::string> label_masks;
  MixRecipe mix;
  std::string mixture;  // file of source ratios
  std::string dtype;    // of bare files; "": by the vocabulary
  TokenFormat tokens;
  data::GeneratedSettings generated;
  int64_t eos_id = 0;  // of generated tokens

  DataKind kind = DataKind::kFixed;
  int64_t sequence_length = 0;
  int64_t max_target_length = 0;         // pieces of so many tokens are shuffled as one; 0: sequence_length
  int64_t source_permutation_seed = -1;  // -1: files in the given order
  bool document_masks = true;
  DocumentRecipe documents;
  FilterRecipe filter;
  PackingRecipe packing;
  InterleavedRecipe interleaved;
  VslRecipe vsl;

  uint64_t seed = 0;  // recipe.seed unless given
  OrderRecipe order;
  WarmUpRecipe warm_up;
};

void visit(FieldVisitor& visitor, DataRecipe& data);

// A value that holds from a step on.
struct Stage {
  int64_t from_step = 1;
  int64_t value = 0;
};
// ConfigError naming `where`: not STEP:VALUE, steps that do not rise, values below 1.
std::vector<Stage> parse_stages(const std::vector<std::string>& texts, const std::string& where);
int64_t value_at(const std::vector<Stage>& stages, int64_t step, int64_t otherwise);

}  // namespace dz::train
