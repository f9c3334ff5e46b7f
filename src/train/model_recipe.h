// The sections recipe.model and recipe.rope: the shape of the network.
#pragma once

#include "numerics/rope.h"
#include "train/fields.h"

namespace dz::train {

struct Recipe;
class YamlReader;

// The values of recipe.rope.yarn where there is none.
inline constexpr numerics::YarnScaling kNoYarn{.factor = 0, .attention_factor = 0};

// Walks both sections; the caller is in `recipe`.
void visit_model(FieldVisitor& visitor, Recipe& recipe);

// Fills in what follows from other keys. ConfigError naming line and key for what does not fit together.
void resolve_model(Recipe& recipe, const YamlReader& reader);

}  // namespace dz::train
