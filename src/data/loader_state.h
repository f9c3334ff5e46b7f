// Loader states that OLMo-core and Grain write, read to find the step of our order that a run goes on with (docs/data.md, "States of other
// loaders"). What cannot be continued exactly is refused, also where the writer itself would read instances twice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/order.h"

namespace dz::data {

// The data set of the run, to be compared with the state's.
struct LoaderIdentity {
  int64_t sequence_length = 0;
  std::optional<int64_t> max_target;         // OLMo-core: max_target_sequence_length
  std::string fingerprint;                   // OLMo-core: of the data set; maxtext: of the index, "sha256:..."
  std::string fingerprint_version = "v2.0";  // OLMo-core
  std::string dtype = "uint32";              // maxtext: of the token files, uint16 or uint32
  bool check_fingerprint = true;             // --override leaves this one check out
  // OLMo-core: the epoch that the trainer's own state names. A loader's state between two epochs looks like one at the start of the older.
  std::optional<int64_t> trainer_epoch;
};

// Where to go on.
struct LoaderPosition {
  int64_t epoch = 0;    // of the next batch
  int64_t batches = 0;  // done: olmo-core in this epoch, else since the start
  int64_t step = 1;     // the next one of the order
};

// The text of a state and the name it has in messages.
struct LoaderStateText {
  std::string where, json;
};

// OLMo-core 2.4.0's NumpyFSLDataLoader.state_dict() as JSON. DataError for a text that is no such state; ConfigError when it is of other data,
// another seed or chunking, or when no step of the order begins where it ended.
LoaderPosition olmo_core_position(const LoaderStateText& state, const Order& order, const LoaderIdentity& identity);

// Grain 0.2.18's DataLoader states of all hosts, in the order of the hosts (process_0-of-N.json ...). Errors as above.
LoaderPosition grain_position(std::span<const LoaderStateText> hosts, const Order& order, const LoaderIdentity& identity);

// A run continues from a state (one file; maxtext: one a host) or after a number of steps; ConfigError when both are given, or neither.
LoaderPosition resume_position(const std::vector<std::filesystem::path>& states, std::optional<int64_t> steps_done, const Order& order,
                               const LoaderIdentity& identity);

}  // namespace dz::data
