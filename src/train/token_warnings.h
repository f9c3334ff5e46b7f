// What a start says about ids of end-of-text and padding that do not fit together.
#pragma once

#include <string>
#include <vector>

#include "data/token_store.h"
#include "train/recipe.h"

namespace dz::train {

// One line each: config.json of recipe.init against the tokenizer beside it, as convert warns; the same config.json against the data; the ids of the
// data against the files beside recipe.data.tokens.tokenizer. `data`: of the store, null for generated data. Files that are missing or unreadable
// are nothing to compare with.
std::vector<std::string> token_warnings(const Recipe& recipe, const data::Vocabulary* data);

}  // namespace dz::train
