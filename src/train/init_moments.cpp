#include "train/init_moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/error.h"
#include "checkpoint/digest.h"
#include "checkpoint/safetensors.h"

namespace dz::train {
namespace {

using Rename = std::function<std::string(std::string_view)>;

[[noreturn]] void refuse(const std::string& where, const std::string& found, const std::string& expected) {
  throw DataError(Complaint{.where = where, .found = found, .expected = expected, .hint = "recipe.init_moments needs one tensor for each weight"});
}

void check_moment(const std::string& where, std::span<const float> values, bool squared) {
  const auto bad = std::find_if(values.begin(), values.end(), [squared](float x) { return !std::isfinite(x) || (squared && x < 0); });
  if (bad == values.end()) return;
  refuse(fmt::format("{}: element {}", where, bad - values.begin()), fmt::format("{}", *bad), squared ? "0 or more" : "a finite number");
}

// `prefixed`: the name that checkpoints give the moment of a weight.
void read_moment(const std::string& path, const Rename& prefixed, bool squared, model::Parameters& out) {
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(path);
  const bool native = source.find(prefixed(out.specs().front().name)) != nullptr;
  if (!native && source.tensors().size() != out.size()) {
    for (const checkpoint::StoredTensor& stored : source.tensors()) {
      if (!std::ranges::binary_search(out.specs(), stored.name, {}, &model::ParameterSpec::name))
        refuse(path + ": " + stored.name, "a tensor that this model does not have", "");
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const model::ParameterSpec& spec = out.specs()[i];
    const std::string name = native ? prefixed(spec.name) : spec.name, where = path + ": " + name;
    const checkpoint::StoredTensor* stored = source.find(name);
    if (stored == nullptr) refuse(where, "no such tensor", shape_text(spec.shape));
    if (stored->shape != spec.shape) refuse(where, "shape " + shape_text(stored->shape), shape_text(spec.shape));
    if (stored->dtype != "F32" && stored->dtype != "BF16") refuse(where, "type " + stored->dtype, "F32 or BF16");
    source.read_f32(*stored, out.tensor(i));
    check_moment(where, out.tensor(i), squared);
  }
}

}  // namespace

std::string load_init_moments(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress) {
  const InitMoments& files = recipe.init_moments;
  if (files.exp_avg.empty()) return "";
  read_moment(files.exp_avg, checkpoint::exp_avg_name, false, state.exp_avg);
  read_moment(files.exp_avg_sq, checkpoint::exp_avg_sq_name, true, state.exp_avg_sq);
  progress.note(fmt::format("init    moments of {}{}; Adam's step {}", files.exp_avg,
                            files.exp_avg == files.exp_avg_sq ? "" : " and " + files.exp_avg_sq, recipe.initial_step));
  return checkpoint::digest_tensors(moment_views(state), pool).total.hex();
}

}  // namespace dz::train
