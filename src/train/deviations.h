// Where a recipe follows OLMo-core although our default is another. docs/fidelity.md has the table with the reasons.
#pragma once

#include <string>
#include <vector>

#include "train/recipe.h"

namespace dz::train {

// One line for each such key, as a start prints it: "KEY VALUE: what it does, as OLMo-core; ours would be ...".
std::vector<std::string> describe_deviations(const Recipe& recipe);

}  // namespace dz::train
