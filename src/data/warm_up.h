// Sequence-length warm-up: batches of the data set's length made shorter on their way to the model, so that the order and with it a resume do
// not depend on the length of a step (OLMo-core: train/callbacks/sequence_length_scheduler.py, data/utils.py truncate_batch, melt_batch).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/loader.h"

namespace dz::data {

enum class WarmUpMode : uint8_t {
  kTruncate,  // the first `length` tokens of each instance; the others are not trained on, but count as consumed
  kSplit,     // each instance becomes sequence_length / length rows, in order: no token is lost
};
std::string_view name_of(WarmUpMode mode);                                       // "truncate", "split"
WarmUpMode parse_warm_up_mode(std::string_view name, const std::string& where);  // ConfigError listing the two

// Makes the rows of a batch `length` tokens long (at least 2); a batch that is no longer is left as it is. kSplit: `length` must divide its
// length, and each id stands for its rows, one after the other, sequence_length / length times.
//
// The last position of a row loses its target in both modes, as in OLMo-core, which makes labels after it has shortened the batch. In a split
// the token to predict is at hand, as the first of the next row; with it, rows would have a label more than instances of that length have, so
// a step of the warm-up would not be a step of a run of that length. r pieces of an instance have length - r labels instead of length - 1.
// Documents that a cut goes through begin anew at the start of the row.
void shorten(Batch& batch, int64_t length, WarmUpMode mode);

}  // namespace dz::data
