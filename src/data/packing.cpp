#include "data/packing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {
namespace {

// numpy.argsort's default for 64-bit integers (numpy/_core/src/npysort/quicksort.cpp, heapsort.cpp), which is defined by what it does: the place of
// equal keys follows from its choice of pivots and swaps, so each of them is as there. `before(a, b)`: a's key is below b's.
class NumpyArgsort {
 public:
  NumpyArgsort(std::span<const int64_t> lengths, std::span<int64_t> order) : lengths_(lengths), order_(order) {
    if (order.empty()) return;
    sort(0, std::ssize(order) - 1, 2 * static_cast<int>(std::bit_width(order.size()) - 1));
  }

 private:
  static constexpr int64_t kInsertionSpan = 15;

  int64_t& at(int64_t place) { return order_[static_cast<size_t>(place)]; }
  // The keys are the negated lengths; comparing the lengths the other way round needs no negation, which could overflow.
  bool before(int64_t a, int64_t b) const { return lengths_[static_cast<size_t>(a)] > lengths_[static_cast<size_t>(b)]; }

  // The depth is looked at when a span is taken up, and not again while its smaller parts are sorted in the loop.
  void sort(int64_t left, int64_t right, int depth) {
    if (depth < 0) return heapsort(left, right - left + 1);
    while (right - left > kInsertionSpan) {
      const int64_t middle = partition(left, right);
      --depth;
      if (middle - left < right - middle) {
        sort(middle + 1, right, depth);
        right = middle - 1;
      } else {
        sort(left, middle - 1, depth);
        left = middle + 1;
      }
    }
    insertion_sort(left, right);
  }

  // Median of three, parked one before the end; what equals it may end on either side.
  int64_t partition(int64_t left, int64_t right) {
    const int64_t middle = left + (right - left) / 2;
    if (before(at(middle), at(left))) std::swap(at(middle), at(left));
    if (before(at(right), at(middle))) std::swap(at(right), at(middle));
    if (before(at(middle), at(left))) std::swap(at(middle), at(left));
    const int64_t pivot = at(middle);
    std::swap(at(middle), at(right - 1));
    int64_t low = left, high = right - 1;
    while (true) {
      while (before(at(++low), pivot)) {
      }
      while (before(pivot, at(--high))) {
      }
      if (low >= high) break;
      std::swap(at(low), at(high));
    }
    std::swap(at(low), at(right - 1));
    return low;
  }

  void insertion_sort(int64_t left, int64_t right) {
    for (int64_t i = left + 1; i <= right; ++i) {
      const int64_t moving = at(i);
      int64_t j = i;
      for (; j > left && before(moving, at(j - 1)); --j) at(j) = at(j - 1);
      at(j) = moving;
    }
  }

  void heapsort(int64_t left, int64_t count) {
    for (int64_t place = count / 2; place > 0; --place) sift_down(left, count, place, at(left + place - 1));
    while (count > 1) {
      const int64_t moving = at(left + count - 1);
      at(left + count - 1) = at(left);
      sift_down(left, --count, 1, moving);
    }
  }

  // Places are counted from 1; the children of place i are 2i and 2i + 1.
  void sift_down(int64_t left, int64_t count, int64_t place, int64_t moving) {
    const auto heap = [&](int64_t i) -> int64_t& { return at(left + i - 1); };
    for (int64_t child = 2 * place; child <= count; child = 2 * place) {
      if (child < count && before(heap(child), heap(child + 1))) ++child;
      if (!before(moving, heap(child))) break;
      heap(place) = heap(child);
      place = child;
    }
    heap(place) = moving;
  }

  std::span<const int64_t> lengths_;
  std::span<int64_t> order_;
};

// Open instances by the room that is left, first come first served among equals.
class Rooms {
 public:
  // An instance with the least room of at least `needed`, and its room; -1: there is none.
  std::pair<int64_t, int64_t> take(int64_t needed) {
    const auto found = queues_.lower_bound(needed);
    if (found == queues_.end()) return {-1, 0};
    const int64_t room = found->first, instance = found->second.head;
    const int64_t next = next_[static_cast<size_t>(instance)];
    if (next < 0) {
      queues_.erase(found);
    } else {
      found->second.head = next;
    }
    return {instance, room};
  }

  void put(int64_t instance, int64_t room) {
    if (static_cast<size_t>(instance) >= next_.size()) next_.resize(static_cast<size_t>(instance) + 1, -1);
    next_[static_cast<size_t>(instance)] = -1;
    const auto [queue, fresh] = queues_.try_emplace(room, Queue{instance, instance});
    if (fresh) return;
    next_[static_cast<size_t>(queue->second.tail)] = instance;
    queue->second.tail = instance;
  }

 private:
  struct Queue {
    int64_t head, tail;
  };
  std::map<int64_t, Queue> queues_;
  std::vector<int64_t> next_;  // by instance; an instance waits in one queue at a time
};

}  // namespace

std::string_view name_of(TieRule rule) { return rule == TieRule::kStable ? "stable" : "numpy-scalar"; }

TieRule parse_tie_rule(std::string_view name, const std::string& where) {
  for (const TieRule rule : {TieRule::kStable, TieRule::kNumpyScalar}) {
    if (name == name_of(rule)) return rule;
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = "stable or numpy-scalar", .hint = ""});
}

std::vector<int64_t> order_by_length(std::span<const int64_t> lengths, TieRule rule) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (rule == TieRule::kNumpyScalar) {
    NumpyArgsort(lengths, order);
  } else {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)]; });
  }
  return order;
}

Packing pack(std::span<const int64_t> lengths, int64_t capacity) {
  std::vector<int64_t> instance_of(lengths.size());
  int64_t instances = 0;
  Rooms rooms;
  for (size_t document = 0; document < lengths.size(); ++document) {
    const int64_t length = lengths[document];
    DZ_CHECK(length >= 1 && length <= capacity, "document", document, "length", length, "capacity", capacity);
    DZ_CHECK(document == 0 || length <= lengths[document - 1], "document", document, "not in descending order", length);
    auto [instance, room] = rooms.take(length);
    if (instance < 0) {
      instance = instances++;
      room = capacity;
    }
    instance_of[document] = instance;
    if (room > length) rooms.put(instance, room - length);
  }
  Packing packing{.documents = std::vector<int64_t>(lengths.size()), .first = std::vector<int64_t>(static_cast<size_t>(instances) + 1, 0)};
  for (const int64_t instance : instance_of) ++packing.first[static_cast<size_t>(instance) + 1];
  std::partial_sum(packing.first.begin(), packing.first.end(), packing.first.begin());
  std::vector<int64_t> next(packing.first.begin(), packing.first.end() - 1);
  for (size_t document = 0; document < lengths.size(); ++document)
    packing.documents[static_cast<size_t>(next[static_cast<size_t>(instance_of[document])]++)] = static_cast<int64_t>(document);
  return packing;
}

}  // namespace dz::data
