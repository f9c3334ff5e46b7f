#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"
#include "eval/parity.h"
#include "model/transformer.h"

namespace dz::eval {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorSource;

void read_as_double(const TensorSource& source, const StoredTensor& tensor, int64_t first, std::span<double> out) {
  if (tensor.dtype == "F64") return source.read_part(tensor, first * 8, std::as_writable_bytes(out));
  std::vector<float> values(out.size());
  source.read_f32_part(tensor, first, values);
  std::copy(values.begin(), values.end(), out.begin());
}

GradientError compare(const TensorSource& source, const StoredTensor& wanted, std::span<const float> ours) {
  double difference = 0, largest = 0;
  std::vector<double> piece;
  for (size_t at = 0; at < ours.size(); at += piece.size()) {
    piece.resize(std::min(static_cast<size_t>(kParityPiece), ours.size() - at));
    read_as_double(source, wanted, static_cast<int64_t>(at), piece);
    for (size_t i = 0; i < piece.size(); ++i) {
      difference = model::larger(difference, std::abs(double{ours[at + i]} - piece[i]));
      largest = model::larger(largest, std::abs(piece[i]));
    }
  }
  const double relative = difference == 0 ? 0 : largest == 0 ? std::numeric_limits<double>::infinity() : difference / largest;
  return {.tensor = wanted.name, .relative = relative};
}

void check_tensors(const TensorSource& source, const std::vector<model::ParameterSpec>& specs) {
  for (const StoredTensor& tensor : source.tensors()) {
    const auto spec = std::ranges::find(specs, tensor.name, &model::ParameterSpec::name);
    const std::string where = source.path_of(tensor).string() + ": " + tensor.name;
    if (spec == specs.end()) throw DataError(Complaint{where, "a tensor of this name", "gradients of the model's parameters only", ""});
    if (spec->shape != tensor.shape) throw DataError(Complaint{where, "another shape than the parameter's", "one gradient for each weight", ""});
  }
  for (const model::ParameterSpec& spec : specs) {
    if (source.find(spec.name) == nullptr)
      throw DataError(Complaint{source.path().string(), "no tensor " + spec.name, "a gradient for each parameter", ""});
  }
}

}  // namespace

template <class T>
model::Parameters mean_loss_gradients(const model::LoadedModel& model, std::span<const int32_t> tokens, int64_t instances, ThreadPool& pool) {
  const int64_t seq = static_cast<int64_t>(tokens.size()) / instances, labels = instances * (seq - 1);
  if (labels < 1) throw DataError(Complaint{"gradients", "instances of one token", "two, so that there is a next one to predict", ""});
  const std::vector<int32_t> targets = next_tokens(tokens, seq, model.config.vocab_size);
  model::Transformer<T> transformer(model.config, {.max_instances = 1, .seq = seq, .remat = model::Remat::kFull}, pool);
  transformer.set_weights(model.parameters);
  model::Parameters gradients(model.config, model::Parameters::Role::kGradient);
  model::LossOut loss;
  for (int64_t instance = 0; instance < instances; ++instance) {
    model::LaneGroup lane = model::whole_batch(instances, 1);
    lane.micro.instances = {instance, instance + 1};
    lane.micro.first_part = instance == 0;
    lane.micro.last_part = instance + 1 == instances;
    transformer.forward_backward({.instances = 1, .seq = seq, .tokens = tokens.data() + instance * seq, .targets = targets.data() + instance * seq},
                                 1.0f / static_cast<float>(labels), 0.0f, lane, gradients, loss);
  }
  finish_tied_gradient(gradients, pool);
  return gradients;
}

template <class T>
std::vector<GradientError> compare_gradients(const model::LoadedModel& model, std::span<const int32_t> tokens, int64_t instances,
                                             const fs::path& gradients, ThreadPool& pool) {
  const TensorSource source = TensorSource::open(gradients);
  check_tensors(source, parameter_specs(model.config));
  const model::Parameters ours = mean_loss_gradients<T>(model, tokens, instances, pool);
  std::vector<GradientError> errors;
  for (size_t i = 0; i < ours.size(); ++i) errors.push_back(compare(source, source.at(ours.specs()[i].name), ours.tensor(i)));
  return errors;
}

template model::Parameters mean_loss_gradients<bf16>(const model::LoadedModel&, std::span<const int32_t>, int64_t, ThreadPool&);
template model::Parameters mean_loss_gradients<float>(const model::LoadedModel&, std::span<const int32_t>, int64_t, ThreadPool&);
template std::vector<GradientError> compare_gradients<bf16>(const model::LoadedModel&, std::span<const int32_t>, int64_t, const fs::path&,
                                                            ThreadPool&);
template std::vector<GradientError> compare_gradients<float>(const model::LoadedModel&, std::span<const int32_t>, int64_t, const fs::path&,
                                                             ThreadPool&);

}  // namespace dz::eval
