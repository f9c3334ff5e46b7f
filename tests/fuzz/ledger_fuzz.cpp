// Any bytes as a ledger: refused, or records whose ids the header allows.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/ledger.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int memory = ::memfd_create("fuzz", 0);
  if (memory < 0 || ::write(memory, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(memory);
  try {
    const int64_t instances = dz::data::ledger_instances(path);
    const dz::data::LedgerSummary summary = dz::data::read_ledger(path, [&](const dz::data::LedgerRecord& record) {
      if (record.step < 1) std::abort();
      for (const int64_t id : record.ids) {
        if (id < 0 || id >= instances) std::abort();
      }
    });
    dz::fuzz::accepted += summary.records > 0;
  } catch (const dz::Error&) {
  }
  ::close(memory);
  return 0;
}
