#include "data/vsl_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "data/epoch_permutations.h"
#include "data/numpy_random.h"

namespace dz::data {
namespace {

int64_t total_batches(std::span<const LengthBucket> buckets) {
  int64_t sum = 0;
  for (const LengthBucket& bucket : buckets) sum += bucket.batches;
  return sum;
}

std::vector<uint32_t> natural_order(std::span<const LengthBucket> buckets, const BigSeed& seed) {
  const int64_t total = total_batches(buckets), longest = buckets.back().batches;
  if (longest == 0) {
    throw ConfigError(Complaint{.where = "recipe.data.vsl.curriculum",
                                .found = fmt::format("no whole batch of instances of {} tokens", buckets.back().length),
                                .expected = "one at least, which the curriculum natural begins with",
                                .hint = "a smaller batch or recipe.data.sequence_length"});
  }
  std::vector<uint32_t> order(static_cast<size_t>(total));
  std::iota(order.begin(), order.end(), 0u);
  NumpyGenerator random(seed);
  std::swap(order[static_cast<size_t>(random.integers(total - longest, total))], order[0]);
  random.shuffle(std::span(order).subspan(1));
  return order;
}

// How likely a bucket is in each subcycle: it peaks when it is its turn.
std::vector<int64_t> odds(CurriculumKind kind, int64_t bucket, int64_t buckets) {
  std::vector<int64_t> list;
  const int64_t start = buckets - bucket;
  for (int64_t cycle = 0; cycle < buckets; ++cycle) {
    const int64_t odd = start + cycle <= buckets ? start + cycle : start - (start + cycle) % buckets;
    list.push_back(kind == CurriculumKind::kGrowP2 ? int64_t{1} << (odd - 1) : odd);
  }
  return list;
}

// Python's round(): halves go to the even neighbour. value is below 2^32.
int64_t round_half_even(double value) {
  const auto whole = static_cast<int64_t>(value);
  const double rest = value - static_cast<double>(whole);
  return whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1) ? 1 : 0);
}

// A bucket's batches of a cycle by subcycle, in double precision as in Python.
std::vector<int64_t> batches_by_subcycle(CurriculumKind kind, int64_t bucket, int64_t buckets, int64_t batches) {
  const std::vector<int64_t> all = odds(kind, bucket, buckets);
  const auto divisor = static_cast<double>(std::accumulate(all.begin(), all.end(), int64_t{0}));
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const int64_t odd : all) {
    counts.push_back(round_half_even(static_cast<double>(odd) / divisor * static_cast<double>(batches)));
    total += counts.back();
  }
  if (total < batches) counts.back() += batches - total;
  if (total > batches) {
    throw ConfigError(Complaint{.where = "recipe.data.vsl.curriculum",
                                .found = fmt::format("{} batches of bucket {} in a cycle", batches, bucket),
                                .expected = "a number that rounding does not make more of, as it does in OLMo-core, which stops there",
                                .hint = "other cycles, another batch, or the curriculum natural"});
  }
  return counts;
}

std::vector<uint32_t> growing_order(std::span<const LengthBucket> buckets, const VslCurriculum& curriculum, const BigSeed& seed) {
  const int64_t count = std::ssize(buckets);
  NumpyGenerator random(seed);
  std::vector<uint32_t> order;
  std::vector<int64_t> next(static_cast<size_t>(count), 0);  // batch of each bucket, numbered through
  std::vector<std::vector<int64_t>> shares(static_cast<size_t>(count));
  int64_t offset = 0;
  for (size_t bucket = 0; bucket < shares.size(); ++bucket) {
    next[bucket] = offset;
    offset += buckets[bucket].batches;
    shares[bucket] = divide_into_shares(buckets[bucket].batches, curriculum.cycles);
  }
  for (size_t cycle = 0; cycle < static_cast<size_t>(curriculum.cycles); ++cycle) {
    std::vector<std::vector<int64_t>> counts;
    for (int64_t bucket = 0; bucket < count; ++bucket)
      counts.push_back(batches_by_subcycle(curriculum.kind, bucket, count, shares[static_cast<size_t>(bucket)][cycle]));
    for (size_t subcycle = 0; subcycle < static_cast<size_t>(count); ++subcycle) {
      const size_t start = order.size();
      for (size_t bucket = 0; bucket < static_cast<size_t>(count); ++bucket) {
        for (int64_t i = 0; i < counts[bucket][subcycle]; ++i) order.push_back(static_cast<uint32_t>(next[bucket]++));
      }
      random.shuffle(std::span(order).subspan(start));
    }
  }
  if (order.empty()) return order;
  const auto first_long = static_cast<uint32_t>(offset - buckets.back().batches);
  const auto found = std::find_if(order.begin(), order.end(), [&](uint32_t batch) { return batch >= first_long; });
  if (found != order.end()) std::swap(*found, order.front());
  return order;
}

OrderSettings order_settings(const Dataset& dataset, const VslOrderSettings& settings) {
  return {.dialect = Dialect::kOlmoCore,
          .instances = dataset.instances(),
          .batch = settings.batch_tokens / dataset.sequence_length(),
          .seed = settings.seed,
          .shuffle = settings.shuffle,
          .first_epoch = 1};
}

// An epoch without a batch: too few instances, or a curriculum that leaves out all batches there would be.
[[noreturn]] void refuse_no_batch(const Dataset& dataset, const VslOrderSettings& settings) {
  const std::vector<LengthBucket> all = length_buckets(dataset, settings.min_length, settings.batch_tokens, {});
  const auto [rarest, most] =
      std::minmax_element(all.begin(), all.end(), [](const LengthBucket& a, const LengthBucket& b) { return a.batches < b.batches; });
  if (most->batches == 0) {
    throw ConfigError(Complaint{.where = "recipe.batch",
                                .found = fmt::format("no whole batch of {} tokens in {} instances", settings.batch_tokens, dataset.instances()),
                                .expected = "one at least",
                                .hint = "a smaller recipe.batch"});
  }
  if (settings.curriculum.balanced && rarest->batches == 0) {
    throw ConfigError(Complaint{.where = "recipe.data.vsl.balanced",
                                .found = fmt::format("no whole batch of instances of {} tokens, so none of the others either", rarest->length),
                                .expected = "one at least of each length",
                                .hint = "balanced: false, or a smaller recipe.batch"});
  }
  throw ConfigError(Complaint{.where = "recipe.data.vsl.cycles",
                              .found = fmt::format("{} cycles for at most {} batches of a length", settings.curriculum.cycles, most->batches),
                              .expected = "a batch of some length for each cycle",
                              .hint = "fewer cycles, or curriculum: natural"});
}

class VslOrder final : public Order {
 public:
  VslOrder(const Dataset& dataset, const VslOrderSettings& settings)
      : Order(order_settings(dataset, settings)),
        curriculum_(settings.curriculum),
        batch_tokens_(settings.batch_tokens),
        buckets_(length_buckets(dataset, settings.min_length, settings.batch_tokens, settings.curriculum)),
        total_(total_batches(buckets_)) {
    instances_of_.resize(buckets_.size());
    for (int64_t id = 0; id < dataset.instances(); ++id) {
      const auto bucket = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(dataset.length(id) / settings.min_length)));
      instances_of_[bucket].push_back(static_cast<uint32_t>(id));
    }
    // numpy's permutation of a list is that of its places, with the seed of epoch and length.
    for (const LengthBucket& bucket : buckets_) {
      const BigSeed seed = settings.seed.plus(static_cast<uint64_t>(bucket.length));
      permutations_.push_back(
          std::make_unique<EpochPermutations>(bucket.instances, [seed](int64_t epoch) { return seed.plus(static_cast<uint64_t>(epoch)); }));
    }
    if (total_ == 0) refuse_no_batch(dataset, settings);
    order_of(1);  // what cannot be ordered is said at the start
  }

  std::vector<int64_t> batch(int64_t step) const override {
    const auto [bucket, number] = place_of(step);
    const int64_t size = batch_tokens_ / buckets_[bucket].length;
    std::vector<int64_t> ids(static_cast<size_t>(size));
    read_bucket(bucket, epoch(step), number * size, ids);
    return ids;
  }

  int64_t epoch(int64_t step) const override {
    DZ_CHECK(step >= 1, "step", step);
    return 1 + (step - 1) / total_;
  }

  int64_t position(int64_t step) const override {
    int64_t before = 0;
    for (int64_t earlier = 1 + (epoch(step) - 1) * total_; earlier < step; ++earlier) before += batch_size(earlier);
    return before;
  }

  int64_t batch_size(int64_t step) const override { return batch_tokens_ / buckets_[place_of(step).first].length; }

  // The epoch's batches one after the other, then what is left of each bucket.
  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override {
    DZ_CHECK(begin >= 0 && begin + std::ssize(out) <= instances(), "begin", begin, "count", out.size());
    std::vector<int64_t> ids;
    const int64_t end = begin + std::ssize(out);
    int64_t position = 0;
    const auto put = [&](size_t bucket, int64_t first, int64_t count) {
      if (position + count > begin && position < end) {
        ids.resize(static_cast<size_t>(count));
        read_bucket(bucket, epoch, first, ids);
        for (int64_t i = std::max(begin - position, int64_t{0}); i < std::min(count, end - position); ++i)
          out[static_cast<size_t>(position + i - begin)] = ids[static_cast<size_t>(i)];
      }
      position += count;
    };
    const int64_t first_step = 1 + (epoch - 1) * total_;
    for (int64_t step = first_step; step < first_step + total_ && position < end; ++step) {
      const auto [bucket, number] = place_of(step);
      const int64_t size = batch_tokens_ / buckets_[bucket].length;
      put(bucket, number * size, size);
    }
    for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      const int64_t used = buckets_[bucket].batches * (batch_tokens_ / buckets_[bucket].length);
      put(bucket, used, buckets_[bucket].instances - used);
    }
  }

 private:
  using Batches = std::shared_ptr<const std::vector<uint32_t>>;

  // The last two epochs are kept, as EpochPermutations keeps them.
  Batches order_of(int64_t epoch) const {
    const std::lock_guard lock(mutex_);
    const auto kept = orders_.find(epoch);
    if (kept != orders_.end()) return kept->second;
    const BigSeed seed = settings().seed.plus(static_cast<uint64_t>(epoch));
    const auto made = std::make_shared<const std::vector<uint32_t>>(curriculum_order(buckets_, curriculum_, seed));
    if (orders_.size() >= 2) orders_.erase(orders_.begin()->first < epoch ? orders_.begin() : std::prev(orders_.end()));
    orders_.emplace(epoch, made);
    return made;
  }

  // Bucket and number of the batch in it.
  std::pair<size_t, int64_t> place_of(int64_t step) const {
    const int64_t position = (step - 1) % total_;
    int64_t batch = settings().shuffle ? int64_t{(*order_of(epoch(step)))[static_cast<size_t>(position)]} : position;
    size_t bucket = 0;
    while (batch >= buckets_[bucket].batches) batch -= buckets_[bucket++].batches;
    return {bucket, batch};
  }

  void read_bucket(size_t bucket, int64_t epoch, int64_t first, std::span<int64_t> out) const {
    const EpochPermutations::Permutation permutation = settings().shuffle ? permutations_[bucket]->of(epoch) : nullptr;
    for (size_t i = 0; i < out.size(); ++i) {
      const size_t at = static_cast<size_t>(first) + i;
      out[i] = instances_of_[bucket][permutation ? (*permutation)[at] : at];
    }
  }

  VslCurriculum curriculum_;
  int64_t batch_tokens_;
  std::vector<LengthBucket> buckets_;
  int64_t total_;  // batches of an epoch
  std::vector<std::vector<uint32_t>> instances_of_;
  std::vector<std::unique_ptr<EpochPermutations>> permutations_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Batches> orders_;
};

constexpr std::array kKinds = {CurriculumKind::kNatural, CurriculumKind::kGrowP2, CurriculumKind::kGrowLinear};

}  // namespace

std::string_view name_of(CurriculumKind kind) {
  switch (kind) {
    case CurriculumKind::kGrowP2:
      return "grow-p2";
    case CurriculumKind::kGrowLinear:
      return "grow-linear";
    default:
      return "natural";
  }
}

CurriculumKind parse_curriculum(std::string_view name, const std::string& where) {
  for (const CurriculumKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = "natural, grow-p2 or grow-linear", .hint = ""});
}

std::string python_repr(const VslCurriculum& curriculum) {
  if (curriculum.kind == CurriculumKind::kNatural) return "VSLNaturalCurriculum()";
  return fmt::format("VSL{}Curriculum(num_cycles={}, balanced={})", curriculum.kind == CurriculumKind::kGrowP2 ? "GrowP2" : "GrowLinear",
                     curriculum.cycles, curriculum.balanced ? "True" : "False");
}

std::string olmo_core_name(const VslCurriculum& curriculum) {
  if (curriculum.kind == CurriculumKind::kNatural) return "vsl-natural";
  return fmt::format("vsl-{}-{}-cycle{}", name_of(curriculum.kind), curriculum.cycles, curriculum.balanced ? "-balanced" : "");
}

std::vector<int64_t> divide_into_shares(int64_t things, int64_t shares) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < shares; ++i) sizes.push_back(things / shares + (i < things % shares ? 1 : 0));
  return sizes;
}

std::vector<LengthBucket> length_buckets(const Dataset& dataset, int64_t min_length, int64_t batch_tokens, const VslCurriculum& curriculum) {
  std::vector<LengthBucket> buckets;
  for (int64_t length = min_length; length <= dataset.sequence_length(); length *= 2) buckets.push_back({.length = length});
  for (int64_t id = 0; id < dataset.instances(); ++id) {
    const int64_t length = dataset.length(id);
    const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const LengthBucket& b) { return b.length == length; });
    DZ_CHECK(bucket != buckets.end(), "instance", id, "length", length);
    ++bucket->instances;
  }
  int64_t fewest = INT64_MAX;
  for (LengthBucket& bucket : buckets) {
    bucket.batches = bucket.instances / (batch_tokens / bucket.length);
    fewest = std::min(fewest, bucket.batches);
  }
  if (curriculum.kind == CurriculumKind::kNatural) return buckets;
  for (LengthBucket& bucket : buckets) bucket.batches = (curriculum.balanced ? fewest : bucket.batches) / curriculum.cycles * curriculum.cycles;
  return buckets;
}

std::vector<uint32_t> curriculum_order(std::span<const LengthBucket> buckets, const VslCurriculum& curriculum, const BigSeed& seed) {
  DZ_CHECK(buckets.size() >= 2 && curriculum.cycles >= 1, "buckets", buckets.size(), "cycles", curriculum.cycles);
  return curriculum.kind == CurriculumKind::kNatural ? natural_order(buckets, seed) : growing_order(buckets, curriculum, seed);
}

std::shared_ptr<const Order> vsl_order(const Dataset& dataset, const VslOrderSettings& settings) {
  const auto complain = [](const std::string& where, int64_t found, const std::string& expected) {
    throw ConfigError(Complaint{.where = where, .found = std::to_string(found), .expected = expected, .hint = ""});
  };
  if (settings.batch_tokens < dataset.sequence_length())
    complain("recipe.batch", settings.batch_tokens, fmt::format("at least {} tokens, the longest instance", dataset.sequence_length()));
  if (settings.curriculum.cycles < 1) complain("recipe.data.vsl.cycles", settings.curriculum.cycles, "at least 1");
  if (dataset.instances() >= int64_t{UINT32_MAX}) complain("recipe.data", dataset.instances(), "fewer than 2^32 - 1 instances for this order");
  return std::make_shared<VslOrder>(dataset, settings);
}

std::vector<int64_t> contiguous_slice(std::span<const int64_t> batch, int64_t rank, int64_t ranks) {
  DZ_CHECK(rank >= 0 && rank < ranks, "rank", rank, "ranks", ranks);
  const size_t share = batch.size() / static_cast<size_t>(ranks);
  const auto part = batch.subspan(static_cast<size_t>(rank) * share, share);
  return {part.begin(), part.end()};
}

}  // namespace dz::data
