// A run directory: its lock, its files, and what happens when it is already there (docs/architecture.md, "A run directory").
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "train/config.h"

namespace dz::train {

class RunDirectory {
 public:
  // Creates `path` when missing and locks it until destruction. TryAgainError when another trainer holds it, CreateError when it cannot be made.
  // fresh: an old run there is first moved to PATH.old-K; `notes` tells.
  RunDirectory(const fs::path& path, bool fresh, std::vector<std::string>& notes);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const fs::path& path() const { return path_; }
  fs::path checkpoints() const { return path_ / "checkpoints"; }
  fs::path metrics() const { return path_ / "metrics.jsonl"; }
  fs::path cache() const { return path_ / "cache"; }  // what can be made again: hashes of token files, packings
  fs::path ledger() const { return path_ / "ledger" / "consumed.bin"; }
  fs::path landmark(int64_t step) const { return path_ / "landmarks" / ("step-" + std::to_string(step)); }

  // recipe.yaml, topology.yaml, run.yaml as resolved, environment.json.
  void write_config(const Config& config, const std::string& environment_json) const;
  // Appends a line to starts.jsonl: who carries the run from here on. For people and the report; nothing is resumed from it.
  void add_start(const std::string& json_line) const;

 private:
  void lock();
  fs::path path_;
  int lock_ = -1;
};

}  // namespace dz::train
