// Runs a fuzz target without libFuzzer: the seeds as they are, then damaged ones. The same arguments give the same inputs.
// usage: fuzz_NAME DIRECTORY-OF-SEEDS [MUTATIONS] [SEED]     exit 1 when no seed was accepted
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "fuzz/fuzz.h"

namespace {

// Mutations that know text formats a little: digits and brackets near the start matter more than the rest.
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

void run(const std::string& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY [MUTATIONS] [SEED]\n", argv[0]);
    return 64;
  }
  const int64_t mutations = argc > 2 ? std::atoll(argv[2]) : 10000;
  std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  std::vector<dz::fs::path> paths;
  for (const auto& entry : dz::fs::directory_iterator(argv[1])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) seeds.push_back(dz::read_file(path));
  if (seeds.empty()) return 66;
  for (const std::string& seed : seeds) run(seed);
  const int64_t good = dz::fuzz::accepted;
  for (int64_t i = 0; i < mutations; ++i) run(mutate(seeds[static_cast<size_t>(i) % seeds.size()], random));
  std::printf("%zu seeds, %lld accepted; %lld damaged ones, %lld accepted\n", seeds.size(), static_cast<long long>(good),
              static_cast<long long>(mutations), static_cast<long long>(dz::fuzz::accepted - good));
  return good > 0 ? 0 : 1;
}
