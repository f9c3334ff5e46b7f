// A state of a few tensors with memory of its own, to save, damage and load.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/scratch.h"
#include "checkpoint/store.h"

namespace dz::checkpoint {

class SmallState {
 public:
  // Values depend on `step`, so that states of different steps differ. `rows` sets the size of the largest tensor.
  explicit SmallState(int64_t step, int64_t rows = 5) : step_(step) {
    add("model.embed_tokens.weight", {rows, 9});
    add("model.layers.10.w", {7});
    add("model.layers.2.w", {7});
    add("model.norm.weight", {3});
    fill();
  }

  Snapshot snapshot() const {
    Snapshot snapshot{
        .step = step_, .parameters = {}, .moments = {}, .trainer_json = trainer_, .side_files = {{"recipe.yaml", "seed: 1\n"}}, .digests = {}};
    for (const Tensor& t : tensors_) {
      snapshot.parameters.push_back({t.name, DType::kF32, t.shape, t.values.data()});
      snapshot.moments.push_back({exp_avg_name(t.name), DType::kF32, t.shape, t.first.data()});
      snapshot.moments.push_back({exp_avg_sq_name(t.name), DType::kF32, t.shape, t.second.data()});
    }
    return snapshot;
  }

  std::vector<TensorSlot> parameter_slots() {
    std::vector<TensorSlot> slots;
    for (Tensor& t : tensors_) slots.push_back({t.name, t.shape, t.values.data()});
    return slots;
  }

  std::vector<TensorSlot> moment_slots() {
    std::vector<TensorSlot> slots;
    for (Tensor& t : tensors_) {
      slots.push_back({exp_avg_name(t.name), t.shape, t.first.data()});
      slots.push_back({exp_avg_sq_name(t.name), t.shape, t.second.data()});
    }
    return slots;
  }

  std::vector<float>& values(size_t tensor) { return tensors_[tensor].values; }

  void load_from(const Checkpoint& checkpoint) {
    load(checkpoint, parameter_slots(), moment_slots());
    step_ = checkpoint.step;
    trainer_ = read_side_file(checkpoint, "trainer.json");
  }

  bool operator==(const SmallState& other) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor &a = tensors_[i], &b = other.tensors_[i];
      if (a.values != b.values || a.first != b.first || a.second != b.second) return false;
    }
    return step_ == other.step_ && trainer_ == other.trainer_;
  }

 private:
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<float> values, first, second;
  };
  void add(const std::string& name, const Shape& shape) {
    const auto count = static_cast<size_t>(element_count(shape));
    tensors_.push_back({name, shape, std::vector<float>(count), std::vector<float>(count), std::vector<float>(count)});
  }
  void fill() {
    float next = static_cast<float>(step_) * 1000.0f;
    for (Tensor& t : tensors_)
      for (auto* list : {&t.values, &t.first, &t.second})
        for (float& value : *list) value = next += 0.25f;
    trainer_ = "{\"adam_step\":" + std::to_string(step_) + "}";
  }

  int64_t step_;
  std::vector<Tensor> tensors_;
  std::string trainer_;
};

// Names in a directory, hidden ones included, sorted.
inline std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace dz::checkpoint
