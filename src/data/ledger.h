// The ledger of a run: which instances each step consumed, written as it happened and never computed from the plan, so that the plan can
// be checked against it (`deltazero audit`, docs/data.md "Ledger").
//
// RUN/ledger/consumed.bin: "dz-ledger-1\n", the number of instances of the data (u64), XXH3-64 of both (u64), then one record a step: step u64,
// sequence length u32, count u32, the ids packed in as many bits as the largest needs (least significant first), XXH3-64 of all that u64.
// Little-endian.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::data {

struct LedgerRecord {
  int64_t step = 0;
  int64_t sequence_length = 0;
  std::vector<int64_t> ids;  // in the order of the batch
  friend bool operator==(const LedgerRecord&, const LedgerRecord&) = default;
};

class Ledger {
 public:
  // Opens or creates `path`, cut back to the records of steps up to `last_step` (a resume), or to nothing (0). A torn last record goes too.
  // DataError when the ledger is of other data: instances differ.
  Ledger(const fs::path& path, int64_t instances, int64_t last_step);
  // One write, so that a kill leaves at most one torn record: the last.
  void append(const LedgerRecord& record);
  void sync() { file_.sync(); }  // before a checkpoint says that these steps are done
  int64_t last_step() const { return last_step_; }

 private:
  File file_;
  int64_t instances_;
  int64_t last_step_ = 0;  // of the records; 0: none
};

struct LedgerSummary {
  int64_t instances = 0;  // of the data, as the header says
  int64_t records = 0;
  bool torn = false;  // the file ends inside a record: the run was killed, or is writing it
};

// Calls `use` with each record in the order of the file, holding one at a time. InputError: no ledger; DataError with byte offset: a header or a
// record that is not what was written.
int64_t ledger_instances(const fs::path& path);  // of the header, 0 for an empty file; the errors of read_ledger
LedgerSummary read_ledger(const fs::path& path, const std::function<void(const LedgerRecord&)>& use);

}  // namespace dz::data
