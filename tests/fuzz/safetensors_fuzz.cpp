// Feeds damaged safetensors files to the reader: it may refuse them, but not crash, hang or take memory that the file does not justify.
// usage: safetensors_fuzz DIRECTORY-OF-GOOD-FILES [MUTATIONS] [SEED]     the same seed gives the same files
// LLVMFuzzerTestOneInput is the entry that libFuzzer calls, when built with clang and -fsanitize=fuzzer and without this main.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"

namespace {

int64_t accepted = 0;

}  // namespace

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
    ++accepted;
  } catch (const dz::DataError&) {
  }
  ::close(memory);
  return 0;
}

namespace {

// Mutations that know the format a little: digits, brackets and the length field matter more than the data.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  static const std::string kAlphabet = "{}[]\",:0123456789-+.eE \\utnf\x01\x7f\x80\xff";
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t i = 0, edits = 1 + below(4); i < edits && bytes.size() > 1; ++i) {
    const size_t place = below(3) == 0 ? below(bytes.size()) : below(std::min<size_t>(bytes.size(), 200));
    switch (below(6)) {
      case 0:
        bytes[place] = static_cast<char>(random());
        break;
      case 1:
        bytes[place] = kAlphabet[below(kAlphabet.size())];
        break;
      case 2:
        bytes.erase(place, 1 + below(8));
        break;
      case 3:
        bytes.insert(place, 1, kAlphabet[below(kAlphabet.size())]);
        break;
      case 4:
        bytes.resize(below(bytes.size()) + 1);
        break;
      case 5:
        bytes.insert(place, bytes.substr(below(bytes.size()), below(64)));
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY [MUTATIONS] [SEED]\n", argv[0]);
    return 64;
  }
  const int64_t mutations = argc > 2 ? std::atoll(argv[2]) : 40000;
  std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  std::vector<dz::fs::path> paths;
  for (const auto& entry : dz::fs::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const auto& path : paths) files.push_back(dz::read_file(path));
  if (files.empty()) return 66;
  for (int64_t i = 0; i < mutations; ++i) {
    const std::string bytes = mutate(files[static_cast<size_t>(i) % files.size()], random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%lld mutations, %lld accepted\n", static_cast<long long>(mutations), static_cast<long long>(accepted));
  return accepted > 0 && accepted < mutations ? 0 : 1;
}
