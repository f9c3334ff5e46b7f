// The audit of a run's data: what its ledger says was consumed, against the plan that the recipe gives.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/training_data.h"

namespace dz::train {

struct AuditDifference {
  int64_t step = 0;
  std::vector<int64_t> planned, consumed;  // instance ids
  std::string what;                        // "other instances", "no record", "recorded twice", "other tokens"
};

struct SourceShare {
  std::string name;
  int64_t instances = 0, consumed = 0;
  double planned_share = 0, share = 0;  // of all instances; of all consumed
};

struct Audit {
  int64_t first_step = 0, last_step = 0;  // of the ledger; 0: it is empty
  int64_t consumed = 0;                   // instances
  int64_t instances = 0;                  // of the data
  int64_t never = 0, once = 0, twice = 0, more = 0;
  int64_t tokens_checked = 0;  // steps whose tokens were read again
  std::vector<SourceShare> shares;
  std::optional<AuditDifference> difference;  // the first
  std::vector<std::string> notes;             // what limits the audit: a torn end, steps before the ledger
  bool at_most_once_an_epoch = true;          // the most frequent instance came at most once more than the rarest
};

using AuditRecords = std::function<void(const std::function<void(int64_t step, const std::vector<int64_t>& ids)>&)>;

// Compares records in the order of their steps with the plan of `data`. For tests, which make wrong records, and for audit_run.
Audit audit_records(const TrainingData& data, const AuditRecords& records);

struct AuditOptions {
  std::vector<std::string> sets;  // changes to the run's recipe.yaml: data that was moved
  bool tokens = false;            // also read the tokens again and compare the batch digests of metrics.jsonl
};

// Reads RUN/recipe.yaml, RUN/ledger and, for the tokens, RUN/metrics.jsonl. InputError: no run or no ledger; DataError: a damaged ledger.
Audit audit_run(const fs::path& run, const AuditOptions& options, ThreadPool& pool);

std::string to_json(const Audit& audit);
std::string to_text(const Audit& audit);

}  // namespace dz::train
