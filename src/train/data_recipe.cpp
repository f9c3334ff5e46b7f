#include "train/data_recipe.h"

#include <charconv>

#include "base/error.h"
#include "numerics/rope.h"

namespace dz::train {
namespace {

constexpr double kMany = 1e15;
constexpr double kSizes = 1 << 24;
constexpr double kPositions = static_cast<double>(numerics::kMaxPositions);
constexpr double kIds = 2147483647;

void visit_tokens(FieldVisitor& visitor, TokenFormat& tokens) {
  visitor.enter("tokens", "source files, mix, mixture: what bare files do not say themselves");
  visitor.field({.key = "vocab_size", .help = "ids are below it", .least = 0, .most = kIds, .added = true}, tokens.vocab_size);
  visitor.field({.key = "eos_id", .help = "ends a document", .least = -1, .most = kIds, .added = true}, tokens.eos_id);
  visitor.field({.key = "pad_id", .help = "fills up instances; -1: none", .least = -1, .most = kIds, .added = true}, tokens.pad_id);
  visitor.field({.key = "bos_id", .help = "starts a document; -1: none", .least = -1, .most = kIds, .added = true}, tokens.bos_id);
  visitor.field({.key = "tokenizer", .help = "tokenizer.json that checkpoints carry; shards have their own", .is_path = true}, tokens.tokenizer);
  visitor.leave();
}

void visit_sources(FieldVisitor& visitor, DataRecipe& data) {
  visitor.field({.key = "shards", .help = "source shards: directory written by deltazero tokenize", .is_path = true}, data.shards);
  visitor.field({.key = "files", .help = "source files: bare token files in order; * and ? match anything", .is_path = true}, data.files);
  visitor.field({.key = "label_masks", .help = "source files: a mask file for each of them, one byte a token", .is_path = true}, data.label_masks);
  visitor.field({.key = "mixture", .help = "source mixture: file of source ratios (docs/data.md, Mixtures)", .is_path = true}, data.mixture);
  visitor.enter("mix", "source mix: a list of AI2, label,path a line (docs/data.md, Mixes)");
  visitor.field({.key = "file", .help = "the list", .is_path = true}, data.mix.file);
  visitor.field({.key = "name", .help = "of the mix: decides the folder of {TOKENIZER}; empty: the file's name", .added = true}, data.mix.name);
  visitor.field({.key = "tokenizer", .help = "identifier, as in allenai/dolma2-tokenizer", .added = true}, data.mix.tokenizer);
  visitor.field({.key = "base_dir", .help = "in front of each path", .is_path = true}, data.mix.base_dir);
  visitor.leave();
  visitor.field({.key = "dtype", .help = "of bare files: uint16 | uint32; empty: by the vocabulary", .added = true}, data.dtype);
  visit_tokens(visitor, data.tokens);
}

void visit_kinds(FieldVisitor& visitor, DataRecipe& data) {
  visitor.enter("documents", "of padded, packed, interleaved and vsl instances, and of masks", "boundaries");
  visitor.field({.key = "boundaries",
                 .help = "behind each EOS, or from FILE.csv.gz; none: document_masks false",
                 .allowed = {"eos", "csv", "none"},
                 .added = true},
                data.documents.boundaries);
  visitor.field({.key = "long_documents", .help = "kind packed: longer than an instance", .allowed = {"truncate", "fragment"}, .added = true},
                data.documents.long_documents);
  visitor.field({.key = "keep_tail", .help = "tokens behind a file's last EOS are a document", .added = true}, data.documents.keep_tail);
  visitor.leave();
  visitor.enter("filter", "instances that repeat themselves lose their targets");
  visitor.field({.key = "count", .help = "repeats that are too many; 0: no filter (OLMo-core: 32)", .least = 0, .most = kSizes, .added = true},
                data.filter.count);
  visitor.field({.key = "periods", .help = "longest n-gram looked for", .least = 1, .most = 4096, .added = true}, data.filter.periods);
  visitor.field({.key = "dialect", .help = "", .allowed = {"olmo-core", "maxtext"}, .added = true}, data.filter.dialect);
  visitor.leave();
  visitor.enter("packing", "kind packed");
  visitor.field({.key = "dialect", .help = "order of documents of equal length", .allowed = {"stable", "olmo-core"}, .added = true},
                data.packing.dialect);
  visitor.field({.key = "group_size", .help = "files packed together", .least = 1, .most = kSizes, .added = true}, data.packing.group_size);
  visitor.field({.key = "olmo_core_caches", .help = "work directory of OLMo-core whose packings are followed", .is_path = true},
                data.packing.olmo_core_caches);
  visitor.leave();
  visitor.enter("interleaved", "kind interleaved");
  visitor.field({.key = "documents", .help = "in an instance", .least = 1, .most = 65536, .added = true}, data.interleaved.documents);
  visitor.field({.key = "chunks", .help = "of a document", .least = 1, .most = 65536, .added = true}, data.interleaved.chunks);
  visitor.field({.key = "exempt", .help = "files whose documents keep their order", .is_path = true}, data.interleaved.exempt);
  visitor.leave();
  visitor.enter("vsl", "kind vsl: instances of varied length, powers of two up to sequence_length");
  visitor.field({.key = "min_length", .help = "the shortest", .least = 1, .most = kSizes, .added = true}, data.vsl.min_length);
  visitor.field({.key = "curriculum", .help = "", .allowed = {"natural", "grow-p2", "grow-linear"}, .added = true}, data.vsl.curriculum);
  visitor.field({.key = "cycles", .help = "of grow-*", .least = 1, .most = 1e6, .added = true}, data.vsl.cycles);
  visitor.field({.key = "balanced", .help = "grow-*: as many batches of each length", .added = true}, data.vsl.balanced);
  visitor.leave();
}

void visit_order(FieldVisitor& visitor, DataRecipe& data) {
  visitor.enter("order", "in which instances come", "dialect");
  visitor.field({.key = "dialect", .help = "", .allowed = {"keyed", "olmo-core", "maxtext"}, .added = true}, data.order.dialect);
  visitor.field({.key = "shuffle", .help = "false: in the order of the data", .added = true}, data.order.shuffle);
  visitor.field({.key = "hosts", .help = "maxtext: its host count, whoever carries the run", .least = 1, .most = 1e6, .added = true},
                data.order.hosts);
  visitor.field({.key = "workers", .help = "maxtext: its Grain workers", .least = 0, .most = 1e6, .added = true}, data.order.workers);
  visitor.field({.key = "skip_batches", .help = "batches to begin behind", .least = 0, .most = kMany, .added = true}, data.order.skip_batches);
  visitor.field({.key = "index", .help = "maxtext: the index that a state names", .is_path = true}, data.order.index);
  visitor.field({.key = "state", .help = "loader state of OLMo-core, or Grain's by host, to go on from", .is_path = true}, data.order.state);
  visitor.leave();
  visitor.enter("warm_up", "lists of STEP:VALUE, from that step on");
  visitor.field(
      {.key = "mode", .help = "shorter instances lose their end, or become more instances", .allowed = {"truncate", "split"}, .added = true},
      data.warm_up.mode);
  visitor.field({.key = "sequence_length", .help = "as in [1:512, 1000:2048, 5000:8192]", .added = true}, data.warm_up.sequence_length);
  visitor.field({.key = "batch", .help = "instances a step", .added = true}, data.warm_up.batch);
  visitor.leave();
}

}  // namespace

void visit(FieldVisitor& visitor, DataRecipe& data) {
  visitor.enter("data", "which tokens, in which order");
  choice(visitor, {.key = "source", .help = "where tokens come from; follows from files, mix or mixture"},
         {"shards", "files", "mix", "mixture", "generated"}, data.source);
  visit_sources(visitor, data);
  choice(visitor, {.key = "kind", .help = "what an instance is", .added = true}, {"fixed", "padded", "packed", "interleaved", "vsl"}, data.kind);
  visitor.field({.key = "sequence_length", .help = "tokens of an instance", .least = 2, .most = kPositions, .required = true}, data.sequence_length);
  visitor.field({.key = "seed", .help = "of the order; recipe.seed unless given"}, data.seed);
  visitor.field(
      {.key = "max_target_length", .help = "shuffle pieces of so many tokens as one; 0: sequence_length", .least = 0, .most = kSizes, .added = true},
      data.max_target_length);
  visitor.field(
      {.key = "source_permutation_seed", .help = "source files, mix: shuffle the files first; -1: do not", .least = -1, .most = kMany, .added = true},
      data.source_permutation_seed);
  visitor.field({.key = "document_masks", .help = "a token sees only its own document"}, data.document_masks);
  visit_kinds(visitor, data);
  visit_order(visitor, data);
  visitor.enter("generated", "source generated: the computed tokens");
  visitor.field({.key = "tokens", .help = "how many", .least = 0, .most = 1e12}, data.generated.tokens);
  visitor.field({.key = "documents", .help = "cut into how many", .least = 1, .most = 1e12}, data.generated.documents);
  visitor.field({.key = "eos_id", .help = "that ends each", .least = 0, .most = kSizes}, data.eos_id);
  visitor.leave();
  visitor.leave();
}

std::vector<Stage> parse_stages(const std::vector<std::string>& texts, const std::string& where) {
  std::vector<Stage> stages;
  const auto number = [](std::string_view text, int64_t& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size() && value >= 1;
  };
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    Stage stage;
    const bool good = colon != std::string::npos && number(std::string_view(text).substr(0, colon), stage.from_step) &&
                      number(std::string_view(text).substr(colon + 1), stage.value) && (stages.empty() || stage.from_step > stages.back().from_step);
    if (!good) {
      throw ConfigError(Complaint{.where = where, .found = text, .expected = "STEP:VALUE, both at least 1, steps that rise", .hint = ""});
    }
    stages.push_back(stage);
  }
  return stages;
}

int64_t value_at(const std::vector<Stage>& stages, int64_t step, int64_t otherwise) {
  int64_t value = otherwise;
  for (const Stage& stage : stages) {
    if (stage.from_step <= step) value = stage.value;
  }
  return value;
}

}  // namespace dz::train
