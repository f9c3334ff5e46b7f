// deltazero inspect DATA --instances A:B: what the instances of a run's data are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dz::cli {

struct InstancesOptions {
  std::string data;               // a run or checkpoint with its recipe.yaml, a config file, or a directory of token shards
  std::string range;              // A:B, instances A to B - 1, or A alone
  int64_t sequence_length = 0;    // for token shards, which no recipe cuts; 0: not given
  std::vector<std::string> sets;  // section.key=value, as for data that was moved
  bool json = false;
};

// Prints them on standard output, one at a time. UsageError: a range outside of the data; InputError: no data there; otherwise the errors of
// load_config and open_data.
void inspect_instances(const InstancesOptions& options);

}  // namespace dz::cli
