#include "train/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "model/remat.h"
#include "numerics/constants.h"
#include "train/init.h"
#include "train/model_recipe.h"
#include "train/yaml_reader.h"

namespace dz::train {
namespace {

template <class Section>
FlatConfig flatten(const char* name, const Section& section, Flattener flattener = {}) {
  Section copy = section;
  flattener.enter(name, "");
  visit(flattener, copy);
  flattener.leave();
  return flattener.take();
}

void visit_all(FieldVisitor& visitor, Config& config) {
  visitor.enter("recipe", "decides the bits; its hash is the identity of a run");
  visit(visitor, config.recipe);
  visitor.leave();
  visitor.enter("topology", "who carries the run; never changes a bit");
  visit(visitor, config.topology);
  visitor.leave();
  visitor.enter("run", "where it goes");
  visit(visitor, config.run);
  visitor.leave();
}

[[noreturn]] void refuse(const YamlReader& reader, const std::string& path, const std::string& found, const std::string& expected,
                         const std::string& hint = "") {
  throw ConfigError(Complaint{.where = reader.where(path), .found = found, .expected = expected, .hint = hint});
}

void resolve_data(const Recipe& recipe, const YamlReader& reader) {
  const DataRecipe& data = recipe.data;
  const auto demand = [&](DataSource source, bool given, const char* key, const char* expected, const char* hint) {
    if (data.source == source && !given) refuse(reader, fmt::format("recipe.data.{}", key), "nothing", expected, hint);
  };
  demand(DataSource::kShards, !data.shards.empty(), "shards", "a directory written by deltazero tokenize", "or recipe.data.source: generated");
  demand(DataSource::kFiles, !data.files.empty(), "files", "a list of token files", "");
  demand(DataSource::kMix, !data.mix.file.empty(), "mix.file", "a mix file: label,path a line", "");
  demand(DataSource::kMix, !data.mix.tokenizer.empty(), "mix.tokenizer", "an identifier, as in allenai/dolma2-tokenizer", "");
  demand(DataSource::kMixture, !data.mixture.empty(), "mixture", "a file of source ratios", "docs/data.md, \"Mixtures\"");
  if (data.source == DataSource::kGenerated && data.generated.tokens < data.sequence_length) {
    refuse(reader, "recipe.data.generated.tokens", std::to_string(data.generated.tokens),
           fmt::format("at least recipe.data.sequence_length ({})", data.sequence_length));
  }
  if (!data.dtype.empty() && data.dtype != "uint16" && data.dtype != "uint32") refuse(reader, "recipe.data.dtype", data.dtype, "uint16 or uint32");
  if (data.max_target_length % data.sequence_length != 0) {
    refuse(reader, "recipe.data.max_target_length", std::to_string(data.max_target_length),
           fmt::format("0, or a multiple of sequence_length ({})", data.sequence_length));
  }
  if (data.kind != DataKind::kFixed && data.max_target_length > 0)
    refuse(reader, "recipe.data.max_target_length", std::to_string(data.max_target_length), "0 unless kind: fixed");
  for (const auto& [key, texts] : {std::pair{"sequence_length", &data.warm_up.sequence_length}, {"batch", &data.warm_up.batch}}) {
    const std::string path = fmt::format("recipe.data.warm_up.{}", key);
    for (const Stage& stage : parse_stages(*texts, reader.where(path))) {
      const bool length = std::string_view(key) == "sequence_length";
      if (length && (stage.value < 2 || data.sequence_length % stage.value != 0))
        refuse(reader, path, std::to_string(stage.value), fmt::format("a divisor of sequence_length ({}), at least 2", data.sequence_length));
    }
  }
}

// Keys that the choice of another one leaves unread. Whoever gives one means something that would not happen.
struct Unread {
  std::string_view keys;  // under the root; with a dot at its end: a whole section
  bool read;
  const char* unless;
};

std::vector<Unread> unread_keys(const DataRecipe& data) {
  const auto from = [&](DataSource source) { return data.source == source; };
  const auto kind = [&](DataKind kind) { return data.kind == kind; };
  const bool computed = from(DataSource::kGenerated), listed = from(DataSource::kFiles) || from(DataSource::kMix);
  const bool maxtext = data.order.dialect == "maxtext";
  return {{"shards", from(DataSource::kShards), "source: shards"},
          {"files", from(DataSource::kFiles), "source: files"},
          {"label_masks", from(DataSource::kFiles), "source: files"},
          {"mix.", from(DataSource::kMix), "source: mix"},
          {"mixture", from(DataSource::kMixture), "source: mixture"},
          {"tokens.tokenizer", !computed, "source: shards, files, mix or mixture"},
          {"dtype", listed || from(DataSource::kMixture), "source: files, mix or mixture; shards say it themselves"},
          {"tokens.", listed || from(DataSource::kMixture), "source: files, mix or mixture; shards say it themselves"},
          {"source_permutation_seed", listed, "source: files or mix"},
          {"kind", !computed, "source: shards, files or mix"},
          {"documents.long_documents", kind(DataKind::kPacked), "kind: packed"},
          {"documents.", !kind(DataKind::kFixed), "kind: padded, packed, interleaved or vsl"},
          {"packing.", kind(DataKind::kPacked), "kind: packed"},
          {"interleaved.", kind(DataKind::kInterleaved), "kind: interleaved"},
          {"vsl.", kind(DataKind::kVsl), "kind: vsl"},
          {"warm_up.batch", !kind(DataKind::kVsl), "kind other than vsl"},
          {"order.dialect", !maxtext || !kind(DataKind::kVsl), "kind other than vsl, whose order is OLMo-core's"},
          {"order.hosts", maxtext, "order.dialect: maxtext"},
          {"order.workers", maxtext, "order.dialect: maxtext"},
          {"order.index", maxtext, "order.dialect: maxtext"},
          {"order.state", !computed, "source: shards, files, mix or mixture"}};
}

// A value that is the default says nothing: the recipe of a run lists every key. generated.* stays where another source is chosen for one start.
void refuse_unread_keys(const std::string& root, const std::vector<Unread>& rules, const Recipe& recipe, const YamlReader& reader) {
  const FlatConfig given = flatten("recipe", recipe), usual = flatten("recipe", Recipe{});
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [path, value] = given[i];
    if (value == usual[i].second || !path.starts_with(root)) continue;
    const std::string_view key = std::string_view(path).substr(root.size());
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const Unread& rule) { return rule.keys.back() == '.' ? key.starts_with(rule.keys) : key == rule.keys; });
    if (rule == rules.end() || rule->read) continue;
    const std::string shown = value.size() > 60 ? value.substr(0, 57) + "..." : value;
    refuse(reader, path, shown, fmt::format("this key only with {}{}", root, rule->unless));
  }
}

// What a file may leave to be understood: the source from the key that names it, no masks from "documents: none".
void resolve_brief(DataRecipe& data, const YamlReader& reader) {
  if (!reader.has("recipe.data.source")) {
    if (!data.files.empty()) data.source = DataSource::kFiles;
    if (!data.mix.file.empty()) data.source = DataSource::kMix;
    if (!data.mixture.empty()) data.source = DataSource::kMixture;
  }
  if (data.documents.boundaries != "none") return;
  const std::string path = "recipe.data.documents.boundaries";
  if (data.kind != DataKind::kFixed) refuse(reader, path, "none", "eos or csv", "instances of this kind are made of documents");
  if (reader.has("recipe.data.document_masks") && data.document_masks)
    refuse(reader, path, "none", "eos", "recipe.data.document_masks: true asks for documents");
  data.document_masks = false;
  data.documents.boundaries = "eos";
}

// Fills in what follows from other keys and refuses what does not fit together.
void resolve(Config& config, const YamlReader& reader) {
  Recipe& recipe = config.recipe;
  if (!reader.has("recipe.data.seed")) recipe.data.seed = recipe.seed;
  if (recipe.numerics != numerics::kNumericsId) {
    refuse(reader, "recipe.numerics", recipe.numerics, numerics::kNumericsId,
           "another version of deltazero made this recipe; its bits differ from this one's");
  }
  if (!std::has_single_bit(static_cast<uint64_t>(recipe.lanes))) refuse(reader, "recipe.lanes", std::to_string(recipe.lanes), "a power of two");
  if (recipe.adamw.beta1 < 0 || recipe.adamw.beta2 < 0)
    refuse(reader, "recipe.optimizer.betas", "another count", "two numbers in [0, 1)", "for OLMo 3 use [0.9, 0.95]");
  resolve_brief(recipe.data, reader);
  resolve_data(recipe, reader);
  refuse_unread_keys("recipe.data.", unread_keys(recipe.data), recipe, reader);
  refuse_unread_keys("recipe.optimizer.", {{"muon.", recipe.optimizer == OptimizerName::kMuon, "name: muon"}}, recipe, reader);
  resolve_model(recipe, reader);
  check_init(recipe, reader.where("recipe"));
  complete_schedule(recipe.schedule, recipe.schedule_keys, recipe.steps, reader.where("recipe.schedule"));
  optim::check(recipe.adamw, reader.where("recipe.optimizer"));
  optim::check(recipe.muon, reader.where("recipe.optimizer.muon"));
  optim::check(recipe.skip_step, reader.where("recipe.optimizer.skip_step"));
  optim::decay_table(recipe.adamw, model::parameter_names(recipe.model), reader.where("recipe.optimizer"));
  if (recipe.init_moments.exp_avg.empty() != recipe.init_moments.exp_avg_sq.empty()) {
    const bool first = recipe.init_moments.exp_avg.empty();
    refuse(reader, first ? "recipe.init_moments.exp_avg" : "recipe.init_moments.exp_avg_sq", "nothing", "a file: both moments are given, or none");
  }
  recipe.skip_step.use_grad_norm = recipe.max_grad_norm > 0;
  if (!model::parse_remat(config.topology.remat)) refuse(reader, "topology.remat", config.topology.remat, model::remat_choices());
  if (config.topology.zero) refuse(reader, "topology.zero", "true", "false", "with one rank there is nothing to shard");
}

}  // namespace

Config parse_config(const std::string& text, const std::string& name, const fs::path& base, const std::vector<std::string>& sets) {
  YamlReader reader(text, name, base);
  for (const std::string& assignment : sets) reader.set(assignment);
  Config config;
  config.recipe.numerics = numerics::kNumericsId;
  visit_all(reader, config);
  reader.finish();
  if (!is_init_method(config.recipe.init)) config.recipe.init = reader.resolved("recipe.init", config.recipe.init);
  resolve(config, reader);
  return config;
}

Config load_config(const fs::path& path, const std::vector<std::string>& sets) {
  return parse_config(read_file(path), path.string(), path.has_parent_path() ? path.parent_path() : fs::path("."), sets);
}

std::string config_help() {
  Config config;
  config.recipe.numerics = numerics::kNumericsId;
  HelpPrinter printer;
  visit_all(printer, config);
  return printer.text();
}

std::string recipe_yaml(const Recipe& recipe) {
  Recipe copy = recipe;
  PathMaker paths;
  visit(paths, copy);
  if (!is_init_method(copy.init)) copy.init = fs::absolute(copy.init).lexically_normal().string();
  return to_yaml(flatten("recipe", copy));
}

std::string topology_yaml(const Topology& topology) { return to_yaml(flatten("topology", topology)); }
std::string run_yaml(const RunSettings& run) { return to_yaml(flatten("run", run)); }

Identity identify(const Recipe& recipe, const std::string& data_digest, const std::string& init_digest, const std::string& moments_digest) {
  Identity identity{flatten("recipe", recipe, Flattener(flatten("recipe", Recipe{})))};
  // A path is no part of the identity: what it leads to is.
  for (auto& [key, value] : identity.fields) {
    if (key == "recipe.init" && !is_init_method(recipe.init)) value = "model";
  }
  identity.fields.emplace_back("recipe.data.digest", data_digest);
  if (!init_digest.empty()) identity.fields.emplace_back(kInitDigest, init_digest);
  if (!moments_digest.empty()) identity.fields.emplace_back(kMomentsDigest, moments_digest);
  return identity;
}

std::string Identity::hash() const {
  Sha256 hash;
  for (const auto& [key, value] : fields) hash.update(key + "=" + value + "\n");
  return hash.hex();
}

std::string to_json(const Identity& identity) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  for (const auto& [key, value] : identity.fields) fields[key] = value;
  return nlohmann::ordered_json{{"hash", identity.hash()}, {"fields", fields}}.dump(1) + "\n";
}

Identity parse_identity(std::string_view json, const std::string& where) {
  Identity identity;
  try {
    const auto parsed = nlohmann::ordered_json::parse(json);
    for (const auto& [key, value] : parsed.at("fields").items()) identity.fields.emplace_back(key, value.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(where + ": not the identity of a recipe: " + error.what());
  }
  return identity;
}

std::vector<std::string> differences(const Identity& run, const Identity& now) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [key, value] : run.fields) both[key] = {value, "(absent)"};
  for (const auto& [key, value] : now.fields) {
    const auto [entry, added] = both.try_emplace(key, "(absent)", value);
    if (!added) entry->second.second = value;
  }
  std::vector<std::string> lines;
  for (const auto& [key, values] : both) {
    if (values.first != values.second) lines.push_back(fmt::format("{:<36} run: {:<16} now: {}", key, values.first, values.second));
  }
  return lines;
}

}  // namespace dz::train
