#include "eval/parity_file.h"

#include <algorithm>

#include "base/error.h"
#include "numerics/rope.h"

namespace dz::eval {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorSource;

constexpr std::string_view kIds = ".input_ids";
[[noreturn]] void fail(const TensorSource& source, const StoredTensor& tensor, const std::string& found, const std::string& expected,
                       const std::string& hint = "") {
  throw DataError(Complaint{source.path_of(tensor).string() + ": " + tensor.name, found, expected, hint});
}

int64_t checked_columns(int64_t columns, const model::ModelConfig& config) {
  if (columns > config.vocab_size) {
    throw ConfigError(Complaint{"--vocab", std::to_string(columns), "at most the model's vocab_size, " + std::to_string(config.vocab_size), ""});
  }
  return columns > 0 ? columns : config.vocab_size;
}

// A tensor with a row for each token, when it is there.
const StoredTensor* find_rows(const TensorSource& source, const std::string& name, const StoredTensor& ids, const std::string& types) {
  const StoredTensor* tensor = source.find(name);
  if (tensor == nullptr) return nullptr;
  if (types.find(tensor->dtype) == std::string::npos) fail(source, *tensor, "type " + tensor->dtype, types);
  if (tensor->shape.size() < ids.shape.size() || !std::equal(ids.shape.begin(), ids.shape.end(), tensor->shape.begin()))
    fail(source, *tensor, "shape " + shape_text(tensor->shape), shape_text(ids.shape) + " and one row a token, as " + ids.name + " has it");
  return tensor;
}

// Its rows have one dimension of `width` values; 0: they are single values.
void check_width(const TensorSource& source, const StoredTensor* tensor, const StoredTensor& ids, int64_t width, const std::string& what) {
  if (tensor == nullptr) return;
  Shape expected = ids.shape;
  if (width > 0) expected.push_back(width);
  if (tensor->shape != expected) fail(source, *tensor, "shape " + shape_text(tensor->shape), shape_text(expected) + what);
}

void check_logits(const TensorSource& source, const StoredTensor* logits, const StoredTensor& ids, int64_t columns, bool whole) {
  if (logits == nullptr) return;
  const bool is_rows = logits->shape.size() == ids.shape.size() + 1;
  if (is_rows && (logits->shape.back() == columns || (!whole && logits->shape.back() > columns))) return;
  Shape expected = ids.shape;
  expected.push_back(columns);
  fail(source, *logits, "shape " + shape_text(logits->shape), shape_text(expected) + (whole ? ", as the model's vocab_size is" : " or more columns"),
       "logits of another model; --vocab N compares the first N columns of both");
}

}  // namespace

bool GoldenPair::has_hidden() const {
  return std::any_of(hidden.begin(), hidden.end(), [](const StoredTensor* tensor) { return tensor != nullptr; });
}

GoldenFile::GoldenFile(const fs::path& path, const model::ModelConfig& config, int64_t columns)
    : source_(TensorSource::open(path)), config_(config), whole_(columns == 0), columns_(checked_columns(columns, config)) {
  for (const StoredTensor& ids : source_.tensors()) {
    if (!ids.name.ends_with(kIds)) continue;
    GoldenPair pair = check(ids.name.substr(0, ids.name.size() - kIds.size()), ids);
    if (pair.logits || (pair.logsumexp && whole_) || pair.has_hidden()) pairs_.push_back(std::move(pair));
  }
  std::ranges::sort(pairs_,
                    [](const GoldenPair& a, const GoldenPair& b) { return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name); });
}

GoldenPair GoldenFile::check(const std::string& name, const StoredTensor& ids) const {
  if (ids.dtype != "I64" && ids.dtype != "I32") fail(source_, ids, "type " + ids.dtype, "I64 or I32");
  if (ids.shape.empty() || ids.shape.size() > 2) fail(source_, ids, "shape " + shape_text(ids.shape), "[tokens] or [instances, tokens]");
  const std::string floats = "F32, BF16 or F16";
  GoldenPair pair{.name = name, .instances = ids.shape.size() == 2 ? ids.shape[0] : 1, .seq = ids.shape.back(), .ids = &ids};
  if (pair.instances < 1 || pair.seq < 1 || pair.seq > numerics::kMaxPositions)
    fail(source_, ids, "shape " + shape_text(ids.shape), "instances of 1 to " + std::to_string(numerics::kMaxPositions) + " tokens");
  pair.logits = find_rows(source_, name + ".logits", ids, floats);
  pair.logits64 = find_rows(source_, name + ".logits64", ids, "F64");
  for (const StoredTensor* logits : {pair.logits, pair.logits64}) check_logits(source_, logits, ids, columns_, whole_rows());
  pair.logsumexp = find_rows(source_, name + ".logsumexp", ids, floats);
  pair.top1 = find_rows(source_, name + ".top1", ids, "I64 or I32");
  for (const StoredTensor* value : {pair.logsumexp, pair.top1}) check_width(source_, value, ids, 0, ", one value a token");
  for (int64_t i = 0; i <= config_.n_layers + 1; ++i) {
    pair.hidden.push_back(find_rows(source_, hidden_name(name, i, config_.n_layers), ids, floats));
    check_width(source_, pair.hidden.back(), ids, config_.d_model, ", as the model's d_model is");
  }
  return pair;
}

std::string hidden_name(const std::string& name, int64_t index, int64_t n_layers) {
  return name + ".hidden." + (index > n_layers ? "norm" : std::to_string(index));
}

int64_t GoldenFile::longest() const {
  int64_t most = 0;
  for (const GoldenPair& pair : pairs_) most = std::max(most, pair.seq);
  return most;
}

std::vector<int64_t> read_integers(const TensorSource& source, const StoredTensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  if (tensor.dtype == "I64") {
    source.read(tensor, std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<int32_t> narrow(values.size());
  source.read(tensor, std::as_writable_bytes(std::span(narrow)));
  return {narrow.begin(), narrow.end()};
}

std::vector<int64_t> GoldenFile::integers(const StoredTensor& tensor) const { return read_integers(source_, tensor); }

std::vector<int32_t> GoldenFile::tokens(const GoldenPair& pair) const {
  const std::vector<int64_t> values = integers(*pair.ids);
  for (const int64_t value : values) {
    if (value < 0 || value >= config_.vocab_size)
      fail(source_, *pair.ids, "token " + std::to_string(value), "tokens below vocab_size, " + std::to_string(config_.vocab_size));
  }
  return {values.begin(), values.end()};
}

void GoldenFile::rows(const StoredTensor& tensor, int64_t first, int64_t width, std::span<float> out) const {
  source_.read_f32_part(tensor, first * width, out);
}

void GoldenFile::rows(const StoredTensor& tensor, int64_t first, int64_t width, std::span<double> out) const {
  source_.read_part(tensor, first * width * 8, std::as_writable_bytes(out));
}

std::vector<int32_t> next_tokens(std::span<const int32_t> tokens, int64_t seq, int64_t columns) {
  std::vector<int32_t> targets(tokens.size(), -1);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % seq != 0 && tokens[i + 1] < columns) targets[i] = tokens[i + 1];
  }
  return targets;
}

}  // namespace dz::eval
