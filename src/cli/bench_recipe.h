// The recipe of the sizes that speed is measured on, as the comparison scripts of other systems have it.
#pragma once

#include <string>

#include "model/bench_sizes.h"
#include "train/recipe.h"

namespace dz::cli {

train::Recipe bench_recipe(const model::BenchSize& size, const std::string& dtype);

}  // namespace dz::cli
