#include "data/source_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {
namespace {

constexpr size_t kMostEntries = size_t{1} << 24;

[[noreturn]] void refuse(const std::string& where, const std::string& found, const std::string& expected, const std::string& hint = "") {
  throw ConfigError(Complaint{.where = where, .found = found, .expected = expected, .hint = hint});
}

double ratio_sum(const MixtureSpec& spec) {
  double sum = 0;
  for (const MixtureSource& source : spec.sources) sum += source.ratio;
  return sum;
}

void check_spec(const MixtureSpec& spec, const FileTokens& tokens) {
  DZ_CHECK(tokens.size() == spec.sources.size(), "sources", tokens.size());
  const double sum = ratio_sum(spec);
  if (spec.sources.empty()) refuse("sources", "none", "at least one");
  if (!(std::fabs(sum - 1.0) <= 1e-8 + 1e-5)) refuse("ratios of the sources", fmt::format("a sum of {}", sum), "1");  // NumPy's allclose
  if (spec.requested_tokens <= 0) refuse("requested_tokens", std::to_string(spec.requested_tokens), "a positive number");
  if (spec.sequence_length <= 0) refuse("sequence_length", std::to_string(spec.sequence_length), "a positive number");
  if (spec.batch_tokens <= 0 || spec.batch_tokens % spec.sequence_length != 0) {
    refuse("batch_tokens", std::to_string(spec.batch_tokens), fmt::format("a multiple of the sequence length {}", spec.sequence_length));
  }
}

int64_t sum_of(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

// --- olmo-core. Every product and quotient is of doubles, as in Python.

struct Wanted {
  MixtureEntry entry;
  int64_t most = 0;  // tokens of the file
};

// 1, 1, ..., rest: repeated subtraction may leave a last tiny chunk, which takes a token of each file.
std::vector<double> take_ratios(double ratio, size_t files) {
  if (ratio <= 1) return {ratio};
  std::vector<double> chunks;
  for (double remaining = ratio; remaining > 0;) {
    if ((chunks.size() + 1) * files > kMostEntries) refuse("max_repetition", fmt::format("{} times {} files", ratio, files), "fewer entries");
    const double chunk = std::min(1.0, remaining);
    chunks.push_back(chunk);
    remaining -= chunk;
  }
  return chunks;
}

void want_source(const MixtureSpec& spec, int64_t index, const std::vector<int64_t>& tokens, std::vector<Wanted>& out) {
  const MixtureSource& source = spec.sources[static_cast<size_t>(index)];
  const int64_t available = sum_of(tokens);
  const auto needed = static_cast<int64_t>(static_cast<double>(spec.requested_tokens) * source.ratio);
  const double cap = static_cast<double>(available) * source.max_source_fraction * source.max_repetition;
  if (available == 0 || std::trunc(cap) < static_cast<double>(needed)) {
    refuse("source " + source.name, fmt::format("{:.0f} tokens that may be used", std::trunc(cap)),
           fmt::format("at least {} for a ratio of {}", needed, source.ratio), "add files, or allow more repetition");
  }
  for (const double ratio : take_ratios(static_cast<double>(needed) / static_cast<double>(available), tokens.size())) {
    for (size_t file = 0; file < tokens.size(); ++file) {
      const auto take = static_cast<int64_t>(std::ceil(static_cast<double>(tokens[file]) * ratio));
      out.push_back({.entry = {.source = index, .file = static_cast<int64_t>(file), .tokens = take}, .most = tokens[file]});
    }
  }
}

// Entries that have room share what is missing: the same for each, then one more by largest remainder, equal ones by higher number.
void hand_out_missing(int64_t missing, const std::vector<int64_t>& most, const std::vector<double>& remainders, std::vector<int64_t>& instances) {
  std::vector<size_t> open;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i] < most[i]) open.push_back(i);
  }
  if (open.empty()) return;
  const int64_t each = missing / static_cast<int64_t>(open.size());
  for (const size_t i : open) {
    const int64_t more = std::min(each, most[i] - instances[i]);
    instances[i] += more;
    missing -= more;
  }
  std::erase_if(open, [&](size_t i) { return instances[i] >= most[i]; });
  std::sort(open.begin(), open.end(), [&](size_t a, size_t b) { return remainders[a] != remainders[b] ? remainders[a] > remainders[b] : a > b; });
  for (size_t i = 0; i < open.size() && static_cast<int64_t>(i) < missing; ++i) ++instances[open[i]];
}

// --- sampled

// `total` in proportion to `weights` (any non-negative numbers of one kind), by largest remainder; equal remainders: the first.
std::vector<int64_t> by_weight(int64_t total, const std::vector<int64_t>& weights) {
  __extension__ using Wide = unsigned __int128;
  const auto sum = static_cast<Wide>(sum_of(weights));
  std::vector<int64_t> parts;
  std::vector<Wide> remainders;
  for (const int64_t weight : weights) {
    const Wide product = static_cast<Wide>(total) * static_cast<Wide>(weight);
    parts.push_back(sum == 0 ? 0 : static_cast<int64_t>(product / sum));
    remainders.push_back(sum == 0 ? Wide{0} : product % sum);
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t left = sum == 0 ? 0 : total - sum_of(parts);
  for (size_t i = 0; static_cast<int64_t>(i) < left; ++i) ++parts[order[i]];
  return parts;
}

std::vector<int64_t> by_ratio(int64_t total, const MixtureSpec& spec) {
  // Ratios as whole numbers of 2^-52 of their sum: exact enough, and then the arithmetic is exact.
  const double sum = ratio_sum(spec);
  std::vector<int64_t> weights;
  for (const MixtureSource& source : spec.sources) weights.push_back(std::llround(source.ratio / sum * 0x1p52));
  return by_weight(total, weights);
}

SampledSource sample_source(const MixtureSpec& spec, const MixtureSource& source, int64_t wanted, const std::vector<int64_t>& tokens) {
  std::vector<int64_t> instances;
  for (const int64_t count : tokens) instances.push_back(count / spec.sequence_length);
  const int64_t all = sum_of(instances);
  const auto usable = static_cast<int64_t>(static_cast<double>(all) * source.max_source_fraction);
  const double possible = std::floor(static_cast<double>(usable) * source.max_repetition);
  if (static_cast<double>(wanted) > possible) {
    const auto count = static_cast<int64_t>(possible);
    refuse("source " + source.name, fmt::format("{} instances needed, {} possible", wanted, count),
           fmt::format("{} tokens more", (wanted - count) * spec.sequence_length), "add files, lower its ratio, or raise max_repetition");
  }
  SampledSource out{.instances = wanted, .rounds = usable == 0 ? 0 : wanted / usable, .files = {}};
  const std::vector<int64_t> usable_by_file = by_weight(usable, instances);
  const std::vector<int64_t> rest_by_file = by_weight(usable == 0 ? 0 : wanted % usable, usable_by_file);
  if (static_cast<double>(out.rounds + 1) * static_cast<double>(tokens.size()) > static_cast<double>(kMostEntries))
    refuse("source " + source.name, fmt::format("{} files, each {} times", tokens.size(), out.rounds), "fewer entries");
  for (size_t i = 0; i < tokens.size(); ++i) out.files.push_back({.instances = instances[i], .usable = usable_by_file[i], .rest = rest_by_file[i]});
  return out;
}

}  // namespace

std::string_view name_of(MixtureDialect dialect) { return dialect == MixtureDialect::kSampled ? "sampled" : "olmo-core"; }

int64_t needed_instances(const MixtureSpec& spec) {
  const double steps = std::ceil(static_cast<double>(spec.requested_tokens) / static_cast<double>(spec.batch_tokens));
  return static_cast<int64_t>(steps) * (spec.batch_tokens / spec.sequence_length);
}

std::vector<MixtureEntry> allocate_as_olmo_core(const MixtureSpec& spec, const FileTokens& tokens) {
  check_spec(spec, tokens);
  std::vector<Wanted> wanted;
  for (size_t i = 0; i < tokens.size(); ++i) want_source(spec, static_cast<int64_t>(i), tokens[i], wanted);
  if (wanted.size() > kMostEntries) refuse("sources", fmt::format("{} entries", wanted.size()), fmt::format("at most {}", kMostEntries));
  std::vector<int64_t> instances, most;
  std::vector<double> remainders;
  for (const Wanted& want : wanted) {
    most.push_back(want.most / spec.sequence_length);
    instances.push_back(std::min(want.entry.tokens / spec.sequence_length, most.back()));
    const int64_t over = want.entry.tokens % spec.sequence_length;
    remainders.push_back(instances.back() < most.back() ? static_cast<double>(over) / static_cast<double>(spec.sequence_length) : 0.0);
  }
  const int64_t missing = needed_instances(spec) - sum_of(instances);
  if (missing > 0) hand_out_missing(missing, most, remainders, instances);
  std::vector<MixtureEntry> entries;
  for (size_t i = 0; i < wanted.size(); ++i) {
    entries.push_back(wanted[i].entry);
    entries.back().tokens = instances[i] * spec.sequence_length;
  }
  return entries;
}

std::vector<SampledSource> allocate_sampled(const MixtureSpec& spec, const FileTokens& tokens) {
  check_spec(spec, tokens);
  const std::vector<int64_t> wanted = by_ratio(needed_instances(spec), spec);
  std::vector<SampledSource> out;
  for (size_t i = 0; i < tokens.size(); ++i) out.push_back(sample_source(spec, spec.sources[i], wanted[i], tokens[i]));
  return out;
}

}  // namespace dz::data
