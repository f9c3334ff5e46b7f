#include "train/model_recipe.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "base/error.h"
#include "model/named.h"
#include "train/recipe.h"
#include "train/yaml_reader.h"

namespace dz::train {
namespace {

constexpr double kMany = 1e15;
constexpr double kSizes = 1 << 24;

// Only where no shape is given yet: a recipe that is walked again keeps its own.
void fill_in_name(Recipe& recipe) {
  const std::optional<model::ModelConfig> named = model::named_model(recipe.model_name);
  if (!named || recipe.model.d_model != 0) return;
  recipe.model = *named;
  recipe.full_every = named->family == model::Family::kOlmo3 ? 4 : 1;
}

void visit_yarn(FieldVisitor& visitor, model::YarnScaling& yarn) {
  visitor.enter("yarn", "reads a longer context than the model was trained on");
  visitor.field({.key = "factor", .help = "times as long; 0: no YaRN", .least = 0, .most = 1e6, .added = true}, yarn.factor);
  visitor.field({.key = "original_max_position_embeddings", .help = "the context before", .least = 1, .most = 1 << 30, .added = true},
                yarn.original_max_position_embeddings);
  visitor.field({.key = "beta_fast", .help = "turns in it above which a pair keeps its frequency", .least = 0, .most = 1e6, .added = true},
                yarn.beta_fast);
  visitor.field({.key = "beta_slow", .help = "turns in it below which a pair is stretched whole", .least = 0, .most = 1e6, .added = true},
                yarn.beta_slow);
  visitor.field({.key = "attention_factor", .help = "of cos and sin; 0: 0.1 ln(factor) + 1", .least = 0, .most = 1e3, .added = true},
                yarn.attention_factor);
  visitor.field({.key = "truncate", .help = "the ramp between ends at whole pairs", .added = true}, yarn.truncate);
  visitor.leave();
}

// YaRN as the recipe gives it, with the attention factor that follows; none when the factor is 0.
void resolve_yarn(Recipe& recipe, const YamlReader& reader) {
  model::YarnScaling& yarn = recipe.yarn;
  const auto refuse = [&](const char* key, const std::string& found, const std::string& expected) {
    throw ConfigError(Complaint{reader.where(std::string("recipe.rope.") + key), found, expected, ""});
  };
  if (yarn.factor == 0) {
    if (yarn != kNoYarn) refuse("yarn.factor", "0, beside other keys of yarn", "how many times longer the context is, as in 8");
    if (recipe.model.yarn_layers != model::YarnLayers::kFull) refuse("yarn_layers", "all", "this key only with recipe.rope.yarn.factor");
    return;
  }
  if (yarn.factor < 1) refuse("yarn.factor", std::to_string(yarn.factor), "0 (no YaRN), or at least 1");
  if (yarn.attention_factor == 0) yarn.attention_factor = numerics::yarn_attention_factor(yarn.factor);
  recipe.model.yarn = yarn;
}

}  // namespace

void visit_model(FieldVisitor& visitor, Recipe& recipe) {
  model::ModelConfig& model = recipe.model;
  visitor.enter("model", "the shape of the network");
  visitor.field({.key = "name", .help = "olmo3_190M, olmo3_7B, ...: the shape, which keys beside it change", .added = true}, recipe.model_name);
  fill_in_name(recipe);
  const bool unnamed = recipe.model_name.empty();
  choice(visitor, {.key = "family", .help = "as Hugging Face's model_type"}, {"olmo2", "olmo3"}, model.family);
  visitor.field({.key = "d_model", .help = "width of the residual stream", .least = 1, .most = kSizes, .required = unnamed}, model.d_model);
  visitor.field({.key = "n_layers", .help = "transformer blocks", .least = 1, .most = 4096, .required = unnamed}, model.n_layers);
  visitor.field({.key = "n_heads", .help = "query heads", .least = 1, .most = 65536, .required = unnamed}, model.n_heads);
  visitor.field({.key = "n_kv_heads", .help = "key and value heads; 0: n_heads", .least = 0, .most = 65536}, model.n_kv_heads);
  visitor.field({.key = "head_dim", .help = "0: d_model / n_heads", .least = 0, .most = 256}, model.head_dim);
  visitor.field({.key = "d_ff", .help = "width of the feed-forward layer", .least = 1, .most = kSizes, .required = unnamed}, model.d_ff);
  visitor.field({.key = "vocab_size", .help = "rows of the embedding", .least = 1, .most = kSizes, .required = unnamed}, model.vocab_size);
  visitor.field({.key = "window", .help = "keys that a sliding layer sees, itself included", .least = 0, .most = kMany}, model.window);
  visitor.field({.key = "full_every", .help = "every n-th layer attends to everything; 0: none does", .least = 0, .most = 4096}, recipe.full_every);
  visitor.field({.key = "rope_theta", .help = "base of the rotary frequencies", .least = 1, .most = 1e12}, model.rope_theta);
  double eps = static_cast<double>(model.rms_norm_eps);
  visitor.field({.key = "rms_norm_eps", .help = "under the root of every norm", .least = 0, .most = 1}, eps);
  model.rms_norm_eps = static_cast<float>(eps);
  visitor.field({.key = "attention_bias", .help = "q, k, v and o have a bias"}, model.attention_bias);
  visitor.field({.key = "tie_word_embeddings", .help = "the head is the embedding"}, model.tie_word_embeddings);
  visitor.leave();
  visitor.enter("rope", "rotary embedding");
  choice(visitor, {.key = "table", .help = "cos and sin of the float32 angle, as the reference, or of the exact one"}, {"reference", "exact"},
         model.rope_table);
  choice(visitor, {.key = "yarn_layers", .help = "layers that rope.yarn stretches; full: those with full attention, as OLMo 3", .added = true},
         {"full", "all"}, model.yarn_layers);
  visit_yarn(visitor, recipe.yarn);
  visitor.leave();
}

void resolve_model(Recipe& recipe, const YamlReader& reader) {
  model::ModelConfig& model = recipe.model;
  if (!recipe.model_name.empty() && !model::named_model(recipe.model_name)) {
    throw ConfigError(
        Complaint{reader.where("recipe.model.name"), recipe.model_name, fmt::format("one of {}", fmt::join(model::model_names(), ", ")), ""});
  }
  recipe.model_name.clear();  // the shape is what counts, however it was given
  if (model.n_kv_heads == 0) model.n_kv_heads = model.n_heads;
  if (model.head_dim == 0) model.head_dim = model.d_model / model.n_heads;
  const bool sliding = model.family == model::Family::kOlmo3 && recipe.full_every != 1;
  if (!sliding) recipe.full_every = 1;
  if (sliding && model.window < 1) {
    throw ConfigError(Complaint{reader.where("recipe.model.window"), std::to_string(model.window), "at least 1: this model has sliding layers",
                                "or full_every: 1"});
  }
  model.set_window_pattern(recipe.full_every);
  resolve_yarn(recipe, reader);
  model.max_position_embeddings = recipe.data.sequence_length;
  // A file with YaRN and another longest context would contradict itself.
  if (model.yarn)
    model.max_position_embeddings = std::llround(model.yarn->factor * static_cast<double>(model.yarn->original_max_position_embeddings));
  if (recipe.data.source == DataSource::kGenerated) model.eos_token_ids = {static_cast<int32_t>(recipe.data.eos_id)};
  model::validate(model, reader.where("recipe.model"));
}

}  // namespace dz::train
