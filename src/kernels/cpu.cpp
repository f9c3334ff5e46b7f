#include "kernels/cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace dz::kernels {
namespace {

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  Leaf(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

constexpr bool bit(unsigned word, int position) { return ((word >> position) & 1u) != 0; }

// Register state that the operating system saves: bits 1-2 ymm, 5-7 zmm, 17-18 tiles.
unsigned saved_state(const Leaf& basic) {
  if (!bit(basic.ecx, 27)) return 0;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Linux hands out the 8 KiB of tile registers on request (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
bool request_tiles() {
  constexpr int64_t kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

CpuFeatures detect() {
  const Leaf basic(1, 0), extended(7, 0), more(7, 1);
  const unsigned saved = saved_state(basic);
  CpuFeatures found;
  found.avx2 = (saved & 0x6u) == 0x6u && bit(basic.ecx, 12) && bit(extended.ebx, 5);
  const bool avx512 = bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) && bit(extended.ebx, 31);
  found.avx512 = found.avx2 && (saved & 0xe6u) == 0xe6u && avx512;
  found.avx512_bf16 = found.avx512 && extended.eax >= 1 && bit(more.eax, 5);
  const bool tiles = bit(extended.edx, 24) && bit(extended.edx, 22);
  found.amx = found.avx512_bf16 && tiles && (saved & 0x60000u) == 0x60000u && request_tiles();
  return found;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

int64_t l2_bytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : int64_t{1} << 20;
}

std::string cpu_name() {
  char name[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned words[4] = {};
    if (__get_cpuid(0x80000002u + i, &words[0], &words[1], &words[2], &words[3]) == 0) return "x86-64";
    std::memcpy(name + 16 * i, words, 16);
  }
  std::string text(name);
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text.empty() ? "x86-64" : text;
}

}  // namespace dz::kernels
