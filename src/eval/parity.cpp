#include "eval/parity.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/thread_pool.h"
#include "model/transformer.h"
#include "numerics/rounding.h"

namespace dz::eval {
namespace {

using checkpoint::StoredTensor;

struct Squares {
  double difference = 0, reference = 0;
};

// What the rows of one pair add up to.
class PairSums {
 public:
  PairSums(const GoldenFile& file, const GoldenPair& pair, const model::ModelConfig& config, ThreadPool& pool)
      : file_(file),
        pair_(pair),
        config_(config),
        pool_(pool),
        parity_(file.columns(), pool),
        tokens_(file.tokens(pair)),
        targets_(next_tokens(tokens_, pair.seq, file.columns())) {
    if (pair.top1 && !pair.logits && file.whole_rows()) top1_ = file.integers(*pair.top1);
    result_ = {.name = pair.name, .instances = pair.instances, .seq = pair.seq};
  }

  const int32_t* tokens(int64_t instance) const { return tokens_.data() + instance * pair_.seq; }

  // Rows of all instances are counted from 0.
  void add_logits(int64_t first, int64_t rows, const float* ours) {
    const int64_t vocab = config_.vocab_size;
    if (pair_.logits) {
      const int64_t width = pair_.logits->shape.back();
      reference_.resize(static_cast<size_t>(rows * width));
      file_.rows(*pair_.logits, first, width, std::span<float>(reference_));
      parity_.add({.rows = rows,
                   .reference = reference_.data(),
                   .reference_stride = width,
                   .ours = ours,
                   .our_stride = vocab,
                   .targets = targets_.data() + first});
    }
    if (pair_.logits64) add_float64(first, rows, ours);
    if (pair_.logsumexp && file_.whole_rows()) add_logsumexp(first, rows, ours);
    for (int64_t row = 0; !top1_.empty() && row < rows; ++row)
      same_top_ += model::argmax({ours + row * vocab, static_cast<size_t>(vocab)}) == top1_[static_cast<size_t>(first + row)] ? 1 : 0;
  }

  template <class T>
  void add_hidden(int64_t index, int64_t instance, const T* ours) {
    const StoredTensor* wanted = pair_.hidden[static_cast<size_t>(index)];
    if (wanted == nullptr) return;
    if (instance == 0) {
      const std::string after = index == 0 ? "the embedding" : index > config_.n_layers ? "the final norm" : "layer " + std::to_string(index);
      result_.hidden.push_back({.index = index, .after = after});
      squares_.emplace_back();
    }
    const auto at = static_cast<size_t>(std::ranges::find(result_.hidden, index, &HiddenError::index) - result_.hidden.begin());
    const int64_t width = config_.d_model, rows_at_once = std::max<int64_t>(1, kParityPiece / width);
    for (int64_t row = 0; row < pair_.seq; row += rows_at_once) {
      reference_.resize(static_cast<size_t>(std::min(rows_at_once, pair_.seq - row) * width));
      file_.rows(*wanted, instance * pair_.seq + row, width, std::span<float>(reference_));
      for (size_t i = 0; i < reference_.size(); ++i) {
        const double reference = double{reference_[i]};
        const double difference = std::abs(double{numerics::to_float(ours[row * width + static_cast<int64_t>(i)])} - reference);
        result_.hidden[at].max_abs = model::larger(result_.hidden[at].max_abs, difference);
        squares_[at].difference += difference * difference;
        squares_[at].reference += reference * reference;
      }
    }
  }

  PairParity result() {
    const double rows = static_cast<double>(pair_.instances * pair_.seq);
    if (pair_.logits) result_.logits = parity_.stats();
    if (pair_.logsumexp && file_.whole_rows()) result_.logsumexp_max_abs = logsumexp_;
    if (!top1_.empty()) result_.top1_agreement = static_cast<double>(same_top_) / rows;
    if (pair_.logits64) {
      const double values = rows * static_cast<double>(file_.columns());
      result_.float64 = Float64Error{.ours = std::sqrt(float64_.difference / values)};
      if (pair_.logits) result_.float64->reference = std::sqrt(float64_.reference / values);
    }
    for (size_t i = 0; i < squares_.size(); ++i) result_.hidden[i].relative_rms = std::sqrt(squares_[i].difference / squares_[i].reference);
    return std::move(result_);
  }

 private:
  void add_float64(int64_t first, int64_t rows, const float* ours) {
    const int64_t width = pair_.logits64->shape.back(), columns = file_.columns();
    truth_.resize(static_cast<size_t>(width));
    for (int64_t row = 0; row < rows; ++row) {
      file_.rows(*pair_.logits64, first + row, width, std::span<double>(truth_));
      for (int64_t j = 0; j < columns; ++j) {
        const double truth = truth_[static_cast<size_t>(j)], mine = double{ours[row * config_.vocab_size + j]} - truth;
        float64_.difference += mine * mine;
        if (pair_.logits == nullptr) continue;
        const double theirs = double{reference_[static_cast<size_t>(row * pair_.logits->shape.back() + j)]} - truth;
        float64_.reference += theirs * theirs;
      }
    }
  }

  void add_logsumexp(int64_t first, int64_t rows, const float* ours) {
    std::vector<float> wanted(static_cast<size_t>(rows));
    file_.rows(*pair_.logsumexp, first, 1, std::span<float>(wanted));
    std::vector<double> mine(wanted.size());
    const auto vocab = static_cast<size_t>(config_.vocab_size);
    pool_.parallel_for(rows, [&](int64_t row) { mine[static_cast<size_t>(row)] = model::log_sum_exp({ours + row * config_.vocab_size, vocab}); });
    for (size_t row = 0; row < wanted.size(); ++row) logsumexp_ = model::larger(logsumexp_, std::abs(mine[row] - double{wanted[row]}));
  }

  const GoldenFile& file_;
  const GoldenPair& pair_;
  const model::ModelConfig& config_;
  ThreadPool& pool_;
  model::Parity parity_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<int64_t> top1_;
  std::vector<float> reference_;
  std::vector<double> truth_;
  std::vector<Squares> squares_;  // as result_.hidden
  Squares float64_;               // of ours, of the reference's own
  double logsumexp_ = 0;
  int64_t same_top_ = 0;
  PairParity result_;
};

}  // namespace

template <class T>
std::vector<PairParity> compare_with_golden(const model::LoadedModel& model, const GoldenFile& golden, ThreadPool& pool) {
  std::vector<PairParity> results;
  if (golden.pairs().empty()) return results;
  model::Transformer<T> transformer(model.config, {.max_instances = 1, .seq = golden.longest(), .backward = false}, pool);
  transformer.set_weights(model.parameters);
  for (const GoldenPair& pair : golden.pairs()) {
    PairSums sums(golden, pair, model.config, pool);
    for (int64_t instance = 0; instance < pair.instances; ++instance) {
      typename model::Transformer<T>::HiddenSink hidden;
      if (pair.has_hidden()) hidden = [&](int64_t index, const T* values) { sums.add_hidden(index, instance, values); };
      transformer.forward_logits(
          {.instances = 1, .seq = pair.seq, .tokens = sums.tokens(instance)},
          [&](int64_t first, int64_t rows, const float* logits) { sums.add_logits(instance * pair.seq + first, rows, logits); }, hidden);
    }
    results.push_back(sums.result());
  }
  return results;
}

template std::vector<PairParity> compare_with_golden<bf16>(const model::LoadedModel&, const GoldenFile&, ThreadPool&);
template std::vector<PairParity> compare_with_golden<float>(const model::LoadedModel&, const GoldenFile&, ThreadPool&);

}  // namespace dz::eval
