// A file of what a reference computed, to compare a model with: a safetensors file with, for each NAME, the token ids NAME.input_ids and at least one
// of logits, logsumexp and hidden:
//
//   NAME.logits          [..., vocab_size]   F32, BF16 or F16
//   NAME.logits64        the same in F64: the truth that rounding errors are measured against
//   NAME.logsumexp, NAME.top1   [...]        of the logits; top1 I64 or I32
//   NAME.hidden.0        [..., d_model]      the embedding; .i after layer i (from 1), .norm after the final norm
//
// where ... is the shape of the ids, [tokens] or [instances, tokens]. Other tensors are left alone. Only pieces of it are ever in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "model/config.h"

namespace dz::eval {

// NAME.hidden.index, or NAME.hidden.norm behind the last layer.
std::string hidden_name(const std::string& name, int64_t index, int64_t n_layers);

// Every element of a tensor of dtype I64 or I32.
std::vector<int64_t> read_integers(const checkpoint::TensorSource& source, const checkpoint::StoredTensor& tensor);

struct GoldenPair {
  std::string name;
  int64_t instances = 0, seq = 0;
  const checkpoint::StoredTensor* ids = nullptr;
  // Null where the file has none.
  const checkpoint::StoredTensor *logits = nullptr, *logits64 = nullptr, *logsumexp = nullptr, *top1 = nullptr;
  std::vector<const checkpoint::StoredTensor*> hidden;  // [n_layers + 2], as Transformer::HiddenSink counts

  bool has_hidden() const;
};

inline constexpr int64_t kParityPiece = int64_t{1} << 20;  // values of a file that are in memory at a time

class GoldenFile {
 public:
  // columns: how many of a row's logits are compared, so that a padded vocabulary fits one that is not; logsumexp and top1 are left alone then.
  // 0: all, and the file must have as many as the model. InputError, CheckpointError; DataError naming the tensor that does not fit the model or its
  // ids.
  GoldenFile(const fs::path& path, const model::ModelConfig& config, int64_t columns = 0);

  const std::vector<GoldenPair>& pairs() const { return pairs_; }  // T9 before T48: by length of the name, then by name
  int64_t columns() const { return columns_; }
  bool whole_rows() const { return whole_; }
  int64_t longest() const;  // tokens of an instance; 0 without pairs

  // [instances, seq]. DataError for an id that the model does not know.
  std::vector<int32_t> tokens(const GoldenPair& pair) const;
  // Rows of a tensor of floats: [first, first + out.size() / width), `width` the size of a row.
  void rows(const checkpoint::StoredTensor& tensor, int64_t first, int64_t width, std::span<float> out) const;
  void rows(const checkpoint::StoredTensor& tensor, int64_t first, int64_t width, std::span<double> out) const;  // F64 as it is
  std::vector<int64_t> integers(const checkpoint::StoredTensor& tensor) const;                                   // I64, I32

 private:
  GoldenPair check(const std::string& name, const checkpoint::StoredTensor& ids) const;

  checkpoint::TensorSource source_;
  model::ModelConfig config_;
  bool whole_;
  int64_t columns_;
  std::vector<GoldenPair> pairs_;
};

// The token after each, -1 after the last of an instance and where it is not among the columns.
std::vector<int32_t> next_tokens(std::span<const int32_t> tokens, int64_t seq, int64_t columns);

}  // namespace dz::eval
