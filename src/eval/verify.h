// Compares two runs bit for bit: the certificates of the steps that both have, and the checkpoints of the same step down to the first
// tensor and element that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "eval/certificates.h"

namespace dz::eval {

struct StepDifference {
  int64_t step = 0;
  std::string what;  // "loss 0x1.8p+1 against 0x1.9p+1, batch ids equal"
};

struct TensorDifference {
  int64_t step = 0;      // of the two checkpoints
  std::string name;      // exp_avg. and exp_avg_sq. names are moments
  std::string what;      // "" or why there is no element: shape, missing
  int64_t element = -1;  // flat index, row-major
  float a = 0, b = 0;
};

struct Verification {
  std::vector<int64_t> steps;         // with a certificate in both, ascending
  std::vector<int64_t> digest_steps;  // whose state digests were compared
  std::vector<int64_t> checkpoints;   // complete in both: every byte read and compared with its manifest
  std::optional<StepDifference> first;
  std::optional<TensorDifference> tensor;    // of the first common checkpoint that differs
  std::optional<int64_t> last_equal_digest;  // step, before the first difference
  std::optional<DigestText> digest;          // of the last step in digest_steps, when all is equal
  std::vector<std::string> settings;         // what differs between the recipes and topologies, in words
  bool same_recipe = true;                   // as far as the files say
  std::vector<std::string> notes;            // what was left out, and why

  bool nothing_in_common() const { return steps.empty() && digest_steps.empty(); }
  bool same() const { return !first && !nothing_in_common(); }
};

// `a` and `b`: run directories, or single checkpoints. A step's state digest comes from its checkpoint or, where there is none, from its
// metrics line; where a run has both they must agree. InputError: no such directory, or neither run nor checkpoint. CheckpointError: a
// checkpoint of a common step is damaged (one whose save was interrupted is only noted).
Verification verify(const fs::path& a, const fs::path& b);

// For people; ends with "DELTA 0" exactly if everything that both have is equal.
std::string to_text(const Verification& verification);
// {"verdict": "same" | "different" | "nothing in common", "steps": {...}, "digest": {...}, "first_difference": ..., ...}
std::string to_json(const Verification& verification);

}  // namespace dz::eval
