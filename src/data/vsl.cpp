// Pieces of documents of varied lengths (OLMo-core: data/numpy_dataset.py NumpyVSLDataset, version 2.4.0).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "data/dataset_kinds.h"
#include "data/document_table.h"

namespace dz::data {
namespace {

DocumentTable::Split in_powers_of_two(int64_t least, int64_t most) {
  return [least, most](DocumentRange range, const DocumentTable::Emit& emit) {
    int64_t start = range.start;
    for (const int64_t length : capped_powers_of_two(range.length(), most)) {
      if (length < least) return;
      emit({start, start + length});
      start += length;
    }
  };
}

class VslDataset : public Dataset {
 public:
  VslDataset(std::shared_ptr<const TokenStore> store, const VslSettings& settings)
      : filter_(settings.filter), pieces_(std::move(store), settings.documents, in_powers_of_two(settings.min_length, settings.max_length)) {
    check_some(pieces_.size(), pieces_.store());
    sequence_length_ = settings.max_length;
    instances_ = pieces_.size();
    vocabulary_ = pieces_.store().vocabulary();
    sources_ = pieces_.sources();
  }

  void read(int64_t instance, Row& row) const override {
    DZ_CHECK(std::ssize(row.tokens) == pieces_.length(instance), "size", row.tokens.size(), "length", pieces_.length(instance));
    pieces_.read(instance, row.tokens, row.label_mask);
    row.filtered = filter_ && !is_clean(row.tokens, *filter_);
  }
  int64_t length(int64_t instance) const override { return pieces_.length(instance); }
  std::string digest() const override { return pieces_.digest(); }

 private:
  std::optional<RepetitionFilter> filter_;
  DocumentTable pieces_;
};

}  // namespace

std::vector<int64_t> capped_powers_of_two(int64_t length, int64_t cap) {
  std::vector<int64_t> powers(static_cast<size_t>(length / cap), cap);
  for (int64_t power = cap / 2; power > 0; power /= 2) {
    if ((length & power) != 0) powers.push_back(power);
  }
  return powers;
}

std::shared_ptr<const Dataset> vsl_dataset(std::shared_ptr<const TokenStore> store, const VslSettings& settings) {
  check_lengths(settings.max_length);
  const auto power_of_two = [](int64_t value) { return value >= 2 && std::has_single_bit(static_cast<uint64_t>(value)); };
  if (!power_of_two(settings.min_length) || !power_of_two(settings.max_length) || settings.min_length >= settings.max_length) {
    throw ConfigError(Complaint{.where = "recipe.data.vsl.min_length, recipe.data.sequence_length",
                                .found = fmt::format("{} and {}", settings.min_length, settings.max_length),
                                .expected = "two powers of two from 2 on, the first below the second",
                                .hint = ""});
  }
  if (settings.filter) check_filter(*settings.filter, "recipe.data.filter");
  return std::make_shared<VslDataset>(std::move(store), settings);
}

}  // namespace dz::data
