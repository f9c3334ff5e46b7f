// Optimised best-fit decreasing bin packing of documents into instances (arXiv 2404.10830, OLMo-core: data/utils.py InstancePacker): the
// longest document first, each into the fullest instance that still has room for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dz::data {

// Which of equally long documents comes first. It decides which document fills a place, never how full an instance is.
enum class TieRule : uint8_t {
  kStable,  // the one that comes first in the data: our default
  // What numpy.argsort(-lengths) gives on a CPU without AVX2: introsort, which is not stable above 16 documents. NumPy on newer CPUs gives other
  // orders again; data packed there can be followed through its cache files only (packing_cache.h).
  kNumpyScalar,
};
std::string_view name_of(TieRule rule);                                   // "stable", "numpy-scalar"
TieRule parse_tie_rule(std::string_view name, const std::string& where);  // ConfigError listing the two

// The documents' numbers by descending length. Lengths are 64-bit.
std::vector<int64_t> order_by_length(std::span<const int64_t> lengths, TieRule rule);

// Documents of each instance in the order in which they were put in: those of instance i are
// documents[first[i], first[i + 1]). Instances are numbered in the order in which they were opened.
struct Packing {
  std::vector<int64_t> documents, first;
  int64_t instances() const { return static_cast<int64_t>(first.size()) - 1; }
  std::span<const int64_t> instance(int64_t i) const {
    const auto begin = static_cast<size_t>(first[static_cast<size_t>(i)]), end = static_cast<size_t>(first[static_cast<size_t>(i) + 1]);
    return std::span(documents).subspan(begin, end - begin);
  }
};

// Packs documents of `lengths`, which must be descending, each in [1, capacity]; documents are named by their place in `lengths`. Of equally
// full instances the one that came to be so first is taken. O(n log(different spaces)): a million documents in well under a second.
Packing pack(std::span<const int64_t> lengths, int64_t capacity);

}  // namespace dz::data
