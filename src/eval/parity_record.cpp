#include "eval/parity_record.h"

#include <algorithm>
#include <map>

#include "base/thread_pool.h"
#include "checkpoint/safetensors.h"
#include "eval/parity.h"
#include "eval/parity_file.h"
#include "model/transformer.h"

namespace dz::eval {
namespace {

// A safetensors file whose tensors are filled in any order.
class Tensors {
 public:
  explicit Tensors(std::vector<checkpoint::TensorSpec> specs) {
    const checkpoint::SafetensorsPlan plan = checkpoint::plan_safetensors(std::move(specs), {});
    file_.write(plan.head);
    for (const checkpoint::StoredTensor& tensor : plan.tensors) begins_[tensor.name] = tensor.offset;
  }

  template <class V>
  void write(const std::string& name, int64_t first_element, const V* values, int64_t count) {
    static_assert(sizeof(V) == 4);
    file_.write_at(begins_.at(name) + first_element * 4, std::as_bytes(std::span(values, static_cast<size_t>(count))));
  }

  File release() { return std::move(file_); }

 private:
  File file_ = File::temporary();
  std::map<std::string, int64_t> begins_;
};

}  // namespace

Recording record_logits(const model::LoadedModel& model, const std::vector<TokenSequence>& sequences, bool hidden, ThreadPool& pool) {
  const model::ModelConfig& config = model.config;
  std::vector<checkpoint::TensorSpec> specs;
  int64_t longest = 1;
  for (const TokenSequence& sequence : sequences) {
    const int64_t seq = sequence.seq();
    longest = std::max(longest, seq);
    specs.push_back({sequence.name + ".input_ids", "I32", {sequence.instances, seq}});
    specs.push_back({sequence.name + ".logits", "F32", {sequence.instances, seq, config.vocab_size}});
    for (int64_t i = 0; hidden && i <= config.n_layers + 1; ++i)
      specs.push_back({hidden_name(sequence.name, i, config.n_layers), "F32", {sequence.instances, seq, config.d_model}});
  }
  Tensors tensors(std::move(specs));
  model::Transformer<float> transformer(config, {.max_instances = 1, .seq = longest, .backward = false}, pool);
  transformer.set_weights(model.parameters);
  for (const TokenSequence& sequence : sequences) {
    const int64_t seq = sequence.seq(), vocab = config.vocab_size;
    tensors.write(sequence.name + ".input_ids", 0, sequence.tokens.data(), sequence.instances * seq);
    for (int64_t instance = 0; instance < sequence.instances; ++instance) {
      model::Transformer<float>::HiddenSink keep;
      if (hidden) {
        keep = [&](int64_t index, const float* values) {
          tensors.write(hidden_name(sequence.name, index, config.n_layers), instance * seq * config.d_model, values, seq * config.d_model);
        };
      }
      transformer.forward_logits(
          {.instances = 1, .seq = seq, .tokens = sequence.tokens.data() + instance * seq},
          [&](int64_t first, int64_t rows, const float* logits) {
            tensors.write(sequence.name + ".logits", (instance * seq + first) * vocab, logits, rows * vocab);
          },
          keep);
    }
  }
  return {tensors.release()};
}

Recording record_gradients(const model::LoadedModel& model, const TokenSequence& sequence, ThreadPool& pool) {
  const model::Parameters gradients = mean_loss_gradients<float>(model, sequence.tokens, sequence.instances, pool);
  Recording recording{File::temporary()};
  const std::vector<TensorView> views = gradients.views();
  checkpoint::write_safetensors(views, {}, [&](std::span<const std::byte> bytes) { recording.file.write(bytes); });
  return recording;
}

}  // namespace dz::eval
