#include "train/token_warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "model/special_tokens.h"
#include "train/init.h"

namespace dz::train {
namespace {

constexpr uintmax_t kLargest = uintmax_t{64} << 20;  // bytes; tokenizer.json of dolma2 has 7 million

// "" unless there is a readable file of a sensible size.
std::string text_in(const fs::path& directory, const std::string& name) {
  std::error_code error;
  const fs::path path = directory / name;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kLargest || error) return "";
  try {
    return read_file(path);
  } catch (const Error&) {
    return "";
  }
}

// Where the files of recipe.init lie; "" when it is a method. A run's own checkpoints need no look: their config.json is what the data said.
fs::path init_directory(const Recipe& recipe) {
  std::error_code error;
  if (is_init_method(recipe.init)) return {};
  return fs::is_regular_file(recipe.init, error) ? fs::path(recipe.init).parent_path() : fs::path(recipe.init);
}

}  // namespace

std::vector<std::string> token_warnings(const Recipe& recipe, const data::Vocabulary* data) {
  std::vector<std::string> warnings;
  const auto add = [&](const fs::path& directory, const model::SpecialTokens& claimed) {
    const auto read = [&](const std::string& name) { return text_in(directory, name); };
    for (const std::string& line : model::token_differences(claimed, read)) warnings.push_back(fmt::format("{}: {}", directory.string(), line));
  };
  if (const fs::path init = init_directory(recipe); !init.empty()) {
    const model::SpecialTokens config = model::special_tokens_of_config(text_in(init, "config.json"));
    add(init, config);
    const bool differs = data != nullptr && data->eos_id >= 0 && !config.eos.empty() &&
                         std::ranges::find(config.eos, static_cast<int32_t>(data->eos_id)) == config.eos.end();
    if (differs)
      warnings.push_back(fmt::format("{}: {} {}, but documents of the data end with {}, which is what the checkpoints of this run will say",
                                     init.string(), config.eos_key, fmt::join(config.eos, " and "), data->eos_id));
  }
  if (data != nullptr && !recipe.data.tokens.tokenizer.empty()) {
    model::SpecialTokens claimed{.eos_key = "recipe.data.tokens.eos_id", .pad_key = "recipe.data.tokens.pad_id", .eos = {}, .pad = {}};
    if (data->eos_id >= 0) claimed.eos = {static_cast<int32_t>(data->eos_id)};
    if (data->pad_id >= 0) claimed.pad = static_cast<int32_t>(data->pad_id);
    add(fs::path(recipe.data.tokens.tokenizer).parent_path(), claimed);
  }
  return warnings;
}

}  // namespace dz::train
