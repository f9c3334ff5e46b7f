// Damaged token files: a .npy header may be refused, but what is accepted must lie inside the file, and every token of it be readable.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/bare_store.h"
#include "data/token_file.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dz::data;
  try {
    const NpyHeader header = parse_npy_header(std::as_bytes(std::span(data, size)), "fuzz");
    if (header.data_offset < 10 || header.data_offset > static_cast<int64_t>(size)) std::abort();
    for (const int64_t extent : header.shape) {
      if (extent < 0) std::abort();
    }
  } catch (const dz::Error&) {
  }
  const int memory = ::memfd_create("fuzz", 0);
  if (memory < 0 || ::write(memory, data, size) != static_cast<ssize_t>(size)) std::abort();
  for (const TokenType type : {TokenType::kUint16, TokenType::kUint32}) {
    try {
      const BareStore store({.paths = {"/proc/self/fd/" + std::to_string(memory)},
                             .labels = {},
                             .masks = {},
                             .type = type,
                             .vocabulary = {.size = 50280, .eos_id = 50279},
                             .cache_directory = {}});
      const int64_t tokens = store.entry(0).tokens;
      ++dz::fuzz::accepted;
      if (tokens * size_of(type) > static_cast<int64_t>(size)) std::abort();
      std::vector<int32_t> ids(static_cast<size_t>(tokens));
      store.read(0, 0, ids);
    } catch (const dz::Error&) {
    }
  }
  ::close(memory);
  return 0;
}
