// The OLMo block in float64, as plain as it can be: an oracle for the real model, and the place where known mistakes are made on purpose.
// It takes cosines and sines from the float32 tables of the reference rule, as the goldens' own float64 model does.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/parameters.h"
#include "numerics/rope.h"

namespace dz::model::test {

enum class Fault {
  kNone,
  kNoWindow,
  kWindowPlusOne,
  kWindowMinusOne,
  kShiftedPattern,
  kNormPerHead,
  kGateUpSwapped,
  kInterleavedRope,
  kPreNorm,
  kInterleavedHeads,
  kYarnOnAllLayers,
  kNoAttentionFactor,
  kAttentionFactorSquared
};

class ReferenceModel {
 public:
  using Rows = std::vector<double>;

  ReferenceModel(const ModelConfig& config, const Parameters& parameters, Fault fault = Fault::kNone) : config_(config), fault_(fault) {
    for (size_t i = 0; i < parameters.size(); ++i) weights_.emplace_back(parameters.tensor(i).begin(), parameters.tensor(i).end());
    for (const ParameterSpec& spec : parameters.specs()) names_.push_back(spec.name);
    if (fault == Fault::kShiftedPattern) {
      config_.layers.insert(config_.layers.begin(), config_.layers.back());
      config_.layers.pop_back();
    }
    if (fault == Fault::kWindowPlusOne) ++config_.window;
    if (fault == Fault::kWindowMinusOne) --config_.window;
    if (fault == Fault::kNoWindow) config_.window = int64_t{1} << 30;  // which layers YaRN stretches stays
  }

  // A weight, to be moved by a finite difference.
  double& weight(const std::string& name, size_t element) { return weights_[index_of(name)][element]; }

  // Logits [tokens, vocab] of one instance.
  Rows logits(const std::vector<int32_t>& tokens, const std::vector<int32_t>& first_visible = {}) const {
    const int64_t seq = static_cast<int64_t>(tokens.size());
    Rows x;
    for (const int32_t token : tokens) {
      for (int64_t j = 0; j < config_.d_model; ++j)
        x.push_back(tensor("model.embed_tokens.weight")[static_cast<size_t>(token * config_.d_model + j)]);
    }
    for (int64_t layer = 0; layer < config_.n_layers; ++layer) {
      const std::string at = "model.layers." + std::to_string(layer) + ".";
      x = residual(x, at + "post_attention_layernorm.weight", [&](const Rows& in) { return attention(in, layer, at, seq, first_visible); });
      x = residual(x, at + "post_feedforward_layernorm.weight", [&](const Rows& in) { return mlp(in, at); });
    }
    const Rows normed = norm(x, tensor("model.norm.weight"), config_.d_model);
    return linear(normed, tensor(config_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"), nullptr, config_.d_model);
  }

 private:
  size_t index_of(const std::string& name) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return i;
    }
    return names_.size();
  }
  const Rows& tensor(const std::string& name) const { return weights_.at(index_of(name)); }
  const Rows* bias(const std::string& name) const { return config_.attention_bias ? &tensor(name) : nullptr; }

  // The right rule puts the norm on the output of the branch.
  template <class Branch>
  Rows residual(const Rows& x, const std::string& norm_name, Branch branch) const {
    const bool before = fault_ == Fault::kPreNorm;
    Rows y = branch(before ? norm(x, tensor(norm_name), config_.d_model) : x);
    if (!before) y = norm(y, tensor(norm_name), config_.d_model);
    for (size_t i = 0; i < x.size(); ++i) y[i] += x[i];
    return y;
  }

  // `width` values share one mean; weights repeat after weight.size() values.
  Rows norm(const Rows& x, const Rows& weight, int64_t width_in) const {
    const size_t width = static_cast<size_t>(width_in);
    Rows y(x.size());
    for (size_t row = 0; row < x.size(); row += width) {
      double squares = 0;
      for (size_t j = 0; j < width; ++j) squares += x[row + j] * x[row + j];
      const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + double{config_.rms_norm_eps});
      for (size_t j = 0; j < width; ++j) y[row + j] = x[row + j] * scale * weight[(row + j) % weight.size()];
    }
    return y;
  }

  static Rows linear(const Rows& x, const Rows& weight, const Rows* bias, int64_t in_width) {
    const size_t in = static_cast<size_t>(in_width), out = weight.size() / in, rows = x.size() / in;
    Rows y(rows * out);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t o = 0; o < out; ++o) {
        double sum = bias ? (*bias)[o] : 0.0;
        for (size_t j = 0; j < in; ++j) sum += x[row * in + j] * weight[o * in + j];
        y[row * out + o] = sum;
      }
    }
    return y;
  }

  numerics::RopeShape rope_of(int64_t layer) const {
    numerics::RopeShape shape = config_.rope_of(layer);
    if (fault_ == Fault::kYarnOnAllLayers) shape.yarn = config_.yarn;
    if (shape.yarn && fault_ == Fault::kNoAttentionFactor) shape.yarn->attention_factor = 1;
    if (shape.yarn && fault_ == Fault::kAttentionFactorSquared) shape.yarn->attention_factor *= shape.yarn->attention_factor;
    return shape;
  }

  Rows turned(const Rows& x, const Rows& weight, int64_t layer, int64_t heads, int64_t seq) const {
    const int64_t dim = config_.head_dim, half = dim / 2;
    const Rows n = norm(x, weight, fault_ == Fault::kNormPerHead ? dim : heads * dim);
    const numerics::RopeTable table = numerics::make_rope_table(rope_of(layer), seq, config_.rope_table);
    const bool interleaved = fault_ == Fault::kInterleavedRope;
    Rows y(n.size());
    for (int64_t head = 0; head < seq * heads; ++head) {
      for (int64_t j = 0; j < half; ++j) {
        const size_t a = static_cast<size_t>(head * dim + (interleaved ? 2 * j : j)),
                     b = static_cast<size_t>(head * dim + (interleaved ? 2 * j + 1 : j + half));
        const size_t angle = static_cast<size_t>(head / heads * half + j);
        const double c = double{table.cos[angle]}, s = double{table.sin[angle]};
        y[a] = n[a] * c - n[b] * s;
        y[b] = n[b] * c + n[a] * s;
      }
    }
    return y;
  }

  Rows attention(const Rows& x, int64_t layer, const std::string& at, int64_t seq, const std::vector<int32_t>& first_visible) const {
    const std::string name = at + "self_attn.";
    const auto project = [&](const char* which) {
      return linear(x, tensor(name + which + ".weight"), bias(name + which + ".bias"), config_.d_model);
    };
    const Rows q = turned(project("q_proj"), tensor(name + "q_norm.weight"), layer, config_.n_heads, seq);
    const Rows k = turned(project("k_proj"), tensor(name + "k_norm.weight"), layer, config_.n_kv_heads, seq);
    const Rows v = project("v_proj");
    Rows y(static_cast<size_t>(seq * config_.q_width()));
    for (int64_t i = 0; i < seq; ++i) {
      const int64_t window = config_.window_of(layer);
      int64_t first = window > 0 && i - window + 1 > 0 ? i - window + 1 : 0;
      if (!first_visible.empty()) first = std::max<int64_t>(first, first_visible[static_cast<size_t>(i)]);
      for (int64_t head = 0; head < config_.n_heads; ++head) attend(q, k, v, i, head, first, y);
    }
    return linear(y, tensor(name + "o_proj.weight"), bias(name + "o_proj.bias"), config_.q_width());
  }

  void attend(const Rows& q, const Rows& k, const Rows& v, int64_t i, int64_t head, int64_t first, Rows& y) const {
    const int64_t dim = config_.head_dim;
    const int64_t kv_head = fault_ == Fault::kInterleavedHeads ? head % config_.n_kv_heads : head / (config_.n_heads / config_.n_kv_heads);
    const auto at_q = [&](int64_t j) { return static_cast<size_t>(i * config_.q_width() + head * dim + j); };
    const auto at_kv = [&](int64_t key, int64_t j) { return static_cast<size_t>(key * config_.kv_width() + kv_head * dim + j); };
    Rows scores;
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t key = first; key <= i; ++key) {
      double dot = 0;
      for (int64_t j = 0; j < dim; ++j) dot += q[at_q(j)] * k[at_kv(key, j)];
      scores.push_back(dot / std::sqrt(static_cast<double>(dim)));
      most = std::max(most, scores.back());
    }
    for (double& score : scores) total += score = std::exp(score - most);
    for (int64_t key = first; key <= i; ++key) {
      for (int64_t j = 0; j < dim; ++j) y[at_q(j)] += scores[static_cast<size_t>(key - first)] / total * v[at_kv(key, j)];
    }
  }

  Rows mlp(const Rows& x, const std::string& at) const {
    Rows gate = linear(x, tensor(at + "mlp.gate_proj.weight"), nullptr, config_.d_model);
    Rows up = linear(x, tensor(at + "mlp.up_proj.weight"), nullptr, config_.d_model);
    if (fault_ == Fault::kGateUpSwapped) std::swap(gate, up);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
    return linear(gate, tensor(at + "mlp.down_proj.weight"), nullptr, config_.d_ff);
  }

  ModelConfig config_;
  Fault fault_;
  std::vector<std::string> names_;
  std::vector<Rows> weights_;
};

// Sum over the labelled rows of ce + z_loss * lse^2, in float64.
inline double reference_loss(const std::vector<double>& logits, const std::vector<int32_t>& targets, double z_loss) {
  const size_t vocab = logits.size() / targets.size();
  double loss = 0;
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    const double* l = logits.data() + row * vocab;
    double most = l[0], sum = 0;
    for (size_t j = 0; j < vocab; ++j) most = std::max(most, l[j]);
    for (size_t j = 0; j < vocab; ++j) sum += std::exp(l[j] - most);
    const double lse = most + std::log(sum);
    loss += lse - l[targets[row]] + z_loss * lse * lse;
  }
  return loss;
}

}  // namespace dz::model::test
