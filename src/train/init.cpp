#include "train/init.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/digest.h"
#include "model/load.h"
#include "model/parameters.h"

namespace dz::train {

namespace {

using model::InitMethod;
using model::InitStream;

struct NamedMethod {
  std::string_view name;
  InitMethod method;
};

constexpr NamedMethod kMethods[] = {{"random", InitMethod::kNormal},         {"torch", InitMethod::kNormal}, {"normal", InitMethod::kNormal},
                                    {"normalized", InitMethod::kNormalized}, {"fan_in", InitMethod::kFanIn}, {"llama", InitMethod::kLlama},
                                    {"llama_depth", InitMethod::kLlamaDepth}};

constexpr const char* kStreams[] = {"keyed", "torch", "torch-erfinv"};

}  // namespace

bool is_init_method(std::string_view init) { return std::ranges::find(kMethods, init, &NamedMethod::name) != std::end(kMethods); }

model::InitSettings init_settings(const Recipe& recipe) {
  InitStream stream = recipe.init_stream;
  if (recipe.init == "torch" && stream == InitStream::kKeyed) stream = InitStream::kTorch;
  return {.method = std::ranges::find(kMethods, recipe.init, &NamedMethod::name)->method,
          .stream = stream,
          .seed = recipe.init_seed < 0 ? recipe.seed : static_cast<uint64_t>(recipe.init_seed)};
}

void check_init(const Recipe& recipe, const std::string& where) {
  const bool random = recipe.init == "random", method = is_init_method(recipe.init);
  if (recipe.init_stream != InitStream::kKeyed && (random || !method)) {
    throw ConfigError(Complaint{.where = where + ".init_stream",
                                .found = "a stream of torch",
                                .expected = random ? "keyed, the stream of init: random" : "no such key when recipe.init is a path",
                                .hint = random ? "init: normal takes any stream; init: torch is normal with torch's" : ""});
  }
  if (recipe.init_seed >= 0 && !method) {
    throw ConfigError(Complaint{.where = where + ".init_seed", .found = "a seed", .expected = "no such key when recipe.init is a path", .hint = ""});
  }
}

std::string init_weights(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress) {
  if (is_init_method(recipe.init)) {
    const model::InitSettings settings = init_settings(recipe);
    model::init_parameters(settings, recipe.model, state.parameters, pool);
    if (recipe.init != "random")
      progress.note(fmt::format("init    {}, {} numbers, seed {}", recipe.init, kStreams[static_cast<size_t>(settings.stream)], settings.seed));
    return "";
  }
  std::error_code ignored;
  const fs::path directory = fs::is_regular_file(recipe.init, ignored) ? fs::path(recipe.init) : model::model_directory(recipe.init);
  const model::Parameters loaded = model::load_parameters(directory, recipe.model);
  std::copy(loaded.arena().begin(), loaded.arena().end(), state.parameters.arena().begin());
  progress.note("init    weights of " + directory.string() + (recipe.init_moments.exp_avg.empty() ? "; moments 0, step 0" : "; step 0"));
  return checkpoint::digest_tensors(state.parameters.views(), pool).total.hex();
}

}  // namespace dz::train
