#include "model/bench_sizes.h"

#include <vector>

#include "base/error.h"

namespace dz::model {
namespace {

struct Row {
  const char* name;
  int64_t d_model, n_layers, n_heads, head_dim, d_ff, vocab, seq_len, window, tokens_per_step, micro_batch;
};

constexpr Row kRows[] = {
    {"smoke", 64, 4, 4, 16, 256, 512, 128, 64, 1024, 4},
    {"nano", 256, 8, 4, 64, 1024, 4096, 512, 256, 8192, 8},
    {"60m", 512, 8, 8, 64, 2048, 32000, 1024, 512, 4096, 4},
    {"190m", 768, 12, 12, 64, 3072, 100352, 1024, 512, 4096, 2},
    {"190m-2048", 768, 12, 12, 64, 3072, 100352, 2048, 1024, 4096, 1},
};

BenchSize size_of(const Row& row) {
  BenchSize size;
  size.name = row.name;
  size.seq_len = row.seq_len;
  size.window = row.window;
  size.tokens_per_step = row.tokens_per_step;
  size.micro_batch = row.micro_batch;
  ModelConfig& config = size.config;
  config.d_model = row.d_model;
  config.n_layers = row.n_layers;
  config.n_heads = config.n_kv_heads = row.n_heads;
  config.head_dim = row.head_dim;
  config.d_ff = row.d_ff;
  config.vocab_size = row.vocab;
  config.window = row.window;
  config.set_window_pattern(4);
  validate(config, size.name);
  return size;
}

std::vector<BenchSize> all_sizes() {
  std::vector<BenchSize> sizes;
  for (const Row& row : kRows) sizes.push_back(size_of(row));
  return sizes;
}

}  // namespace

std::span<const BenchSize> bench_sizes() {
  static const std::vector<BenchSize> sizes = all_sizes();
  return sizes;
}

const BenchSize& bench_size(std::string_view name, std::string_view where) {
  std::string names;
  for (const BenchSize& size : bench_sizes()) {
    if (size.name == name) return size;
    names += (names.empty() ? "" : ", ") + size.name;
  }
  throw ConfigError({.where = std::string(where), .found = std::string(name), .expected = "one of " + names, .hint = ""});
}

}  // namespace dz::model
