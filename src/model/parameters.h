// One float32 arena with a tensor for each parameter, in byte order of the names: weights, gradients and moments all have this form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/large_memory.h"
#include "base/tensor.h"
#include "model/config.h"

namespace dz {
class ThreadPool;
}

namespace dz::model {

class Parameters {
 public:
  // Gradients of a tied model hold one tensor more, the head's own part: it goes through lanes and tree apart from the embedding's.
  enum class Role : uint8_t { kState, kGradient };

  explicit Parameters(const ModelConfig& config, Role role = Role::kState);  // every value +0
  static int64_t arena_elements(const ModelConfig& config, Role role);       // of such an arena, padding and all

  // The parameters of the model; the extra gradient of a tied head is not among them.
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  size_t size() const { return specs_.size(); }
  std::span<float> tensor(size_t index) { return {arena_.data() + offsets_[index], counts_[index]}; }
  std::span<const float> tensor(size_t index) const { return {arena_.data() + offsets_[index], counts_[index]}; }
  size_t index_of(std::string_view name) const;                       // DZ_CHECK when there is no such parameter
  std::vector<TensorView> views(std::string_view prefix = {}) const;  // names are prefix + name

  bool has_tied_head() const { return offsets_.size() > specs_.size(); }
  // Where the gradient of the head goes: lm_head.weight, or the extra tensor of a tied model.
  size_t head_index() const;
  std::span<float> head() { return tensor(head_index()); }

  // All tensors with the padding (+0) between them: to add, clear or copy everything at once.
  std::span<float> arena() { return arena_; }
  std::span<const float> arena() const { return arena_; }

 private:
  std::vector<ParameterSpec> specs_;
  std::vector<size_t> offsets_, counts_;
  LargeVector<float> arena_;
};

// After the lane tree, before the norm: embedding = head + embedding, when the model is tied; else nothing.
void finish_tied_gradient(Parameters& gradients, ThreadPool& pool);

// Reads model.safetensors, or the shards of model.safetensors.index.json, in `directory` (bf16 or f32). Exactly the tensors of the model must
// be there: DataError naming the one that is missing, left over, or of another shape or type. Nothing is allocated before that is known.
// The bytes of a native checkpoint are checked against its manifest: CheckpointError.
Parameters load_parameters(const fs::path& directory, const ModelConfig& config);

}  // namespace dz::model
