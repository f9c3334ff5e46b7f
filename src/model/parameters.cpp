#include "model/parameters.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "kernels/state.h"

namespace dz::model {
namespace {

constexpr size_t kAlign = 16;  // floats: tensors begin at cache lines
size_t padded(size_t count) { return (count + kAlign - 1) / kAlign * kAlign; }

// The parameters, and the extra tensor of a tied head's gradient.
std::vector<int64_t> tensor_elements(const ModelConfig& config, Parameters::Role role) {
  std::vector<int64_t> counts;
  for (const ParameterSpec& spec : parameter_specs(config)) counts.push_back(element_count(spec.shape));
  if (role == Parameters::Role::kGradient && config.tie_word_embeddings) counts.push_back(config.vocab_size * config.d_model);
  return counts;
}

void check_tensor(const ParameterSpec& spec, const checkpoint::StoredTensor& stored, const fs::path& path) {
  const std::string where = path.string() + ": " + spec.name;
  if (stored.shape != spec.shape)
    throw DataError(Complaint{where, "shape " + shape_text(stored.shape), shape_text(spec.shape), "config.json and the weights disagree"});
  if (stored.dtype != "F32" && stored.dtype != "BF16") throw DataError(Complaint{where, "type " + stored.dtype, "F32 or BF16", ""});
}

// A tensor that nobody reads is a sign that config.json describes another model.
void check_nothing_left(const std::vector<ParameterSpec>& specs, const checkpoint::TensorSource& source) {
  for (const checkpoint::StoredTensor& stored : source.tensors()) {
    if (std::ranges::binary_search(specs, stored.name, {}, &ParameterSpec::name)) continue;
    throw DataError(Complaint{source.path_of(stored).string() + ": " + stored.name, "a tensor that this model does not have", "",
                              "config.json and the weights disagree"});
  }
}

// A checkpoint of ours, which has hashes to check; without its manifest it is an interrupted save, not a Hugging Face directory.
bool is_native(const fs::path& directory) { return fs::exists(directory / "manifest.json") || fs::exists(directory / "trainer.json"); }

}  // namespace

Parameters::Parameters(const ModelConfig& config, Role role) : specs_(parameter_specs(config)) {
  const std::vector<int64_t> counts = tensor_elements(config, role);
  size_t used = 0;
  for (const int64_t count : counts) {
    offsets_.push_back(used);
    counts_.push_back(static_cast<size_t>(count));
    used += padded(counts_.back());
  }
  arena_.resize(used);
}

int64_t Parameters::arena_elements(const ModelConfig& config, Role role) {
  size_t used = 0;
  for (const int64_t count : tensor_elements(config, role)) used += padded(static_cast<size_t>(count));
  return static_cast<int64_t>(used);
}

size_t Parameters::index_of(std::string_view name) const {
  const auto it = std::ranges::lower_bound(specs_, name, {}, [](const ParameterSpec& spec) { return std::string_view(spec.name); });
  DZ_CHECK(it != specs_.end() && it->name == name, "name", name);
  return static_cast<size_t>(it - specs_.begin());
}

std::vector<TensorView> Parameters::views(std::string_view prefix) const {
  std::vector<TensorView> views;
  for (size_t i = 0; i < specs_.size(); ++i) views.push_back({std::string(prefix) + specs_[i].name, DType::kF32, specs_[i].shape, tensor(i).data()});
  return views;
}

size_t Parameters::head_index() const { return has_tied_head() ? specs_.size() : index_of("lm_head.weight"); }

void finish_tied_gradient(Parameters& gradients, ThreadPool& pool) {
  if (!gradients.has_tied_head()) return;
  const std::span<float> embedding = gradients.tensor(gradients.index_of("model.embed_tokens.weight"));
  kernels::add({.count = static_cast<int64_t>(embedding.size()), .a = embedding.data(), .b = gradients.head().data()}, pool);
}

Parameters load_parameters(const fs::path& directory, const ModelConfig& config) {
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(directory);
  const std::vector<ParameterSpec> specs = parameter_specs(config);
  for (const ParameterSpec& spec : specs) {
    const checkpoint::StoredTensor* stored = source.find(spec.name);
    if (stored == nullptr) {
      throw DataError(Complaint{directory.string() + ": " + spec.name, "no such tensor", shape_text(spec.shape),
                                "the weights are of another model, or incomplete"});
    }
    check_tensor(spec, *stored, source.path_of(*stored));
  }
  check_nothing_left(specs, source);
  Parameters parameters(config);
  if (is_native(directory)) {
    std::vector<checkpoint::TensorSlot> slots;
    for (size_t i = 0; i < specs.size(); ++i) slots.push_back({specs[i].name, specs[i].shape, parameters.tensor(i).data()});
    checkpoint::load_parameters(checkpoint::open_checkpoint(directory), slots);
  } else {
    for (size_t i = 0; i < specs.size(); ++i) source.read_f32(source.at(specs[i].name), parameters.tensor(i));
  }
  return parameters;
}

}  // namespace dz::model
