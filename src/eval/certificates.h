// The certificates of a run: what each line of metrics.jsonl proves about its step, and what the checkpoints prove about the state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::eval {

// Hexadecimal digests of a state (docs/checkpoints.md).
struct DigestText {
  std::string parameters, moments, trainer;
  friend bool operator==(const DigestText&, const DigestText&) = default;
};

// Of one step; a text is empty when the line does not have it.
struct Certificate {
  std::string batch;       // digest of the instances and their tokens
  std::string loss, norm;  // hex floats: equal text is equal bits
  std::string lr;
  bool skipped = false;
  std::optional<DigestText> digest;  // after the step, when it was due
};

struct CertificateLog {
  std::map<int64_t, Certificate> steps;  // of a step that was written twice the later line counts
  std::vector<std::string> notes;        // lines that could not be read: a run that goes on, or was killed, has a torn last one
};

// metrics.jsonl of a run; an empty log with a note when there is none.
CertificateLog read_certificates(const fs::path& run);

// One setting that differs between two runs: key, and its value in each ("" where it is missing).
struct SettingDifference {
  std::string key, a, b;
};

// The keys of two YAML files that differ, in key order, nested keys joined by dots. A missing or unreadable file has no keys.
std::vector<SettingDifference> yaml_differences(const fs::path& a, const fs::path& b);

// A text or number of RUN/environment.json; "" when it is not there.
std::string environment_value(const fs::path& run, const std::string& key);

}  // namespace dz::eval
