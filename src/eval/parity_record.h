// What a model computes in float32, written as a file that another model can be compared with (parity_file.h): the reference model and ours need
// not be in memory at the same time, and no more logits than a chunk of rows.
#pragma once

#include "base/file.h"
#include "eval/parity_tokens.h"
#include "model/load.h"

namespace dz {
class ThreadPool;
}

namespace dz::eval {

// A file without a name (File::temporary): as large as the logits, tokens * vocab_size * 4 bytes, and the hidden states.
struct Recording {
  File file;
  fs::path path() const { return "/proc/self/fd/" + std::to_string(file.descriptor()); }  // opens it again
};

// NAME.input_ids, NAME.logits and, with `hidden`, NAME.hidden.* of each sequence. IoError when the disk is full.
Recording record_logits(const model::LoadedModel& model, const std::vector<TokenSequence>& sequences, bool hidden, ThreadPool& pool);

// The gradients of mean_loss_gradients() by the names of the parameters.
Recording record_gradients(const model::LoadedModel& model, const TokenSequence& sequence, ThreadPool& pool);

}  // namespace dz::eval
