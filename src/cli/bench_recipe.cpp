#include "cli/bench_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>

#include "base/error.h"
#include "numerics/rope.h"

namespace dz::cli {
namespace {

int64_t number_in(const std::string& change, size_t begin) {
  int64_t value = 0;
  const char* end = change.data() + change.size();
  const auto [stop, error] = std::from_chars(change.data() + begin, end, value);
  if (error == std::errc() && stop == end && value >= 0 && value <= int64_t{1} << 30) return value;
  throw UsageError(Complaint{.where = "--set", .found = change, .expected = "KEY=NUMBER, from 0 to 2^30", .hint = ""});
}

}  // namespace

model::BenchSize changed_size(const std::string& name, const std::vector<std::string>& changes) {
  model::BenchSize size = model::bench_size(name, "--model");
  model::ModelConfig& config = size.config;
  const std::map<std::string, int64_t*> keys = {{"d_model", &config.d_model},      {"n_layers", &config.n_layers},
                                                {"n_heads", &config.n_heads},      {"n_kv_heads", &config.n_kv_heads},
                                                {"head_dim", &config.head_dim},    {"d_ff", &config.d_ff},
                                                {"vocab", &config.vocab_size},     {"seq_len", &size.seq_len},
                                                {"window", &config.window},        {"tokens_per_step", &size.tokens_per_step},
                                                {"micro_batch", &size.micro_batch}};
  bool kv_heads_given = false;
  for (const std::string& change : changes) {
    const size_t equals = std::min(change.find('='), change.size());
    const auto key = keys.find(change.substr(0, equals));
    if (key == keys.end() || equals == change.size()) {
      std::vector<std::string> names;
      for (const auto& [known, value] : keys) names.push_back(known);
      throw UsageError(
          Complaint{.where = "--set", .found = change, .expected = fmt::format("KEY=NUMBER, KEY of {}", fmt::join(names, ", ")), .hint = ""});
    }
    *key->second = number_in(change, equals + 1);
    kv_heads_given = kv_heads_given || key->first == "n_kv_heads";
  }
  if (!kv_heads_given) config.n_kv_heads = config.n_heads;
  config.set_window_pattern(config.window == 0 ? 1 : 4);
  size.window = config.window;
  model::validate(config, "--set");
  if (size.seq_len < 1 || size.micro_batch < 1 || size.tokens_per_step < size.seq_len || size.tokens_per_step % size.seq_len != 0) {
    throw UsageError(Complaint{
        .where = "tokens_per_step, seq_len, micro_batch",
        .found = fmt::format("{} tokens a step, {} an instance, {} instances at a time", size.tokens_per_step, size.seq_len, size.micro_batch),
        .expected = "whole instances, at least one",
        .hint = ""});
  }
  if (size.seq_len > numerics::kMaxPositions) {
    throw UsageError(Complaint{"seq_len", std::to_string(size.seq_len), fmt::format("at most {}", numerics::kMaxPositions), ""});
  }
  return size;
}

train::Recipe bench_recipe(const model::BenchSize& size, const std::string& dtype) {
  train::Recipe recipe;
  recipe.dtype = dtype;
  recipe.model = size.config;
  recipe.data.sequence_length = size.seq_len;
  recipe.batch = size.instances();
  recipe.schedule = {.kind = optim::ScheduleKind::kConstant, .lr = 1e-3, .t_max = 1};
  return recipe;
}

}  // namespace dz::cli
