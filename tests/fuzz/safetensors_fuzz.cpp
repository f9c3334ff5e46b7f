// Feeds damaged safetensors files to the reader: it may refuse them, but not crash, hang or take memory that the file does not justify.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int memory = ::memfd_create("fuzz", 0);
  if (memory < 0 || ::write(memory, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    const auto source = dz::checkpoint::TensorSource::open("/proc/self/fd/" + std::to_string(memory));
    for (const auto& tensor : source.tensors()) {
      if (tensor.bytes > static_cast<int64_t>(size)) std::abort();  // a size that was believed without being checked
      std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
      source.read(tensor, bytes);
    }
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  ::close(memory);
  return 0;
}
