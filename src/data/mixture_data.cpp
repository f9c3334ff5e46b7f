#include "data/mixture_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/keyed_permutation.h"

namespace dz::data {
namespace {

std::vector<int64_t> first_entries(const MixtureSpec& spec) {
  std::vector<int64_t> firsts;
  int64_t first = 0;
  for (const MixtureSource& source : spec.sources) {
    firsts.push_back(first);
    first += static_cast<int64_t>(source.paths.size());
  }
  return firsts;
}

// The head of each file, possibly several times.
class HeadStore : public TokenStore {
 public:
  HeadStore(const MixtureSpec& spec, std::shared_ptr<const TokenStore> files) : files_(std::move(files)) {
    vocabulary_ = files_->vocabulary();
    type_ = files_->type();
    const std::vector<int64_t> firsts = first_entries(spec);
    for (const MixtureEntry& entry : allocate_as_olmo_core(spec, tokens_of_files(spec, *files_))) {
      of_.push_back(firsts[static_cast<size_t>(entry.source)] + entry.file);
      const TokenEntry& file = files_->entry(of_.back());
      entries_.push_back({.name = file.name, .label = file.label, .tokens = entry.tokens, .bytes = entry.tokens * size_of(type_)});
    }
  }

  void read(int64_t entry, int64_t first, std::span<int32_t> out) const override {
    const int64_t tokens = this->entry(entry).tokens;
    const auto count = static_cast<int64_t>(out.size());
    DZ_CHECK(first >= 0 && count <= tokens && first <= tokens - count, "first", first, "count", count, "tokens", tokens);
    files_->read(of_[static_cast<size_t>(entry)], first, out);
  }
  void verify(ThreadPool& pool) const override { files_->verify(pool); }
  std::string digest() const override {
    Sha256 hash;
    hash.update("deltazero-mixture-1\nfiles " + files_->digest() + "\n");
    for (size_t i = 0; i < of_.size(); ++i) hash.update(fmt::format("{} {}\n", of_[i], entries_[i].tokens));
    return hash.hex();
  }
  std::string manifest_json() const override {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(files_->manifest_json());
    json["digest"] = digest();
    json["mixture"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < of_.size(); ++i) json["mixture"].push_back({of_[i], entries_[i].tokens});
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

 private:
  std::shared_ptr<const TokenStore> files_;
  std::vector<int64_t> of_;  // the file of each entry
};

// Instances of whole files, chosen: source by source, round by round, file by file; within a file in the order of its permutation, of which the
// first `usable` may be used and the first `rest` of those come once more. Nothing but a table of runs is held.
class SampledDataset : public Dataset {
 public:
  SampledDataset(const MixtureSpec& spec, std::shared_ptr<const TokenStore> store)
      : store_(std::move(store)), files_(fixed_dataset(store_, spec.sequence_length)) {
    sequence_length_ = spec.sequence_length;
    vocabulary_ = store_->vocabulary();
    hash_.update(fmt::format("deltazero-sample-1\nlength {}\nseed {}\n", spec.sequence_length, spec.seed));
    const std::vector<SampledSource> sampled = allocate_sampled(spec, tokens_of_files(spec, *store_));
    const std::vector<int64_t> firsts = first_entries(spec);
    for (size_t i = 0; i < sampled.size(); ++i) add_source(spec, i, sampled[i], firsts[i]);
    choice_ = hash_.hex();
    DZ_CHECK(instances_ == needed_instances(spec), "instances", instances_);
  }

  void read(int64_t instance, Row& row) const override { files_->read(chosen(instance), row); }
  int64_t length(int64_t instance) const override { return files_->length(chosen(instance)); }
  std::string digest() const override { return sha256_hex("sample " + choice_ + "\nfiles " + files_->digest() + "\n"); }

 private:
  struct Run {
    int64_t first = 0;  // instance of the mixture
    int64_t base = 0;   // first instance of the file
    size_t permutation = 0;
  };

  void add_source(const MixtureSpec& spec, size_t index, const SampledSource& sampled, int64_t first_entry) {
    const std::string& name = spec.sources[index].name;
    sources_.push_back({.name = name, .first = instances_, .instances = sampled.instances, .tokens = sampled.instances * sequence_length_});
    hash_.update(fmt::format("source {} {}\n", name, sampled.rounds));
    const size_t first_permutation = permutations_.size();
    for (size_t i = 0; i < sampled.files.size(); ++i) {
      const SampledFile& file = sampled.files[i];
      hash_.update(fmt::format("{} {} {}\n", file.instances, file.usable, file.rest));
      const numerics::RandomStream stream(spec.seed, fmt::format("mixture sample, file {} of {}", i, name));
      permutations_.emplace_back(std::max<int64_t>(file.instances, 1), stream.bits(0), 0);
    }
    for (int64_t round = 0; round <= sampled.rounds; ++round) {
      for (size_t i = 0; i < sampled.files.size(); ++i) {
        const int64_t count = round < sampled.rounds ? sampled.files[i].usable : sampled.files[i].rest;
        if (count == 0) continue;
        const DatasetSource& file = files_->sources()[static_cast<size_t>(first_entry) + i];
        runs_.push_back({.first = instances_, .base = file.first, .permutation = first_permutation + i});
        instances_ += count;
      }
    }
  }

  int64_t chosen(int64_t instance) const {
    DZ_CHECK(instance >= 0 && instance < instances_, "instance", instance, "instances", instances_);
    const Run& run = *(std::upper_bound(runs_.begin(), runs_.end(), instance, [](int64_t id, const Run& other) { return id < other.first; }) - 1);
    return run.base + permutations_[run.permutation](instance - run.first);
  }

  std::shared_ptr<const TokenStore> store_;
  std::shared_ptr<const Dataset> files_;
  std::vector<Run> runs_;
  std::vector<KeyedPermutation> permutations_;  // a file each
  Sha256 hash_;
  std::string choice_;
};

std::vector<std::string> notes_of(const BareStore& store, const Dataset& dataset, int64_t sequence_length) {
  std::vector<std::string> notes = store.notes();
  for (const TokenEntry& entry : store.entries()) {
    if (entry.tokens > 0 && entry.tokens < sequence_length)
      notes.push_back(fmt::format("{}: its {} tokens are less than an instance of {}", entry.name, entry.tokens, sequence_length));
  }
  for (const DatasetSource& source : dataset.sources()) {
    if (source.instances == 0) notes.push_back(fmt::format("source {}: no instance in the mixture", source.name));
  }
  return notes;
}

}  // namespace

std::shared_ptr<const BareStore> mixture_files(const MixtureSpec& spec, BareSettings settings) {
  if (!settings.masks.empty() || !settings.paths.empty())
    throw ConfigError(Complaint{
        .where = "source mixture", .found = "token or label mask files of its own", .expected = "none: the spec names the files", .hint = ""});
  for (const MixtureSource& source : spec.sources) {
    settings.paths.insert(settings.paths.end(), source.paths.begin(), source.paths.end());
    settings.labels.insert(settings.labels.end(), source.paths.size(), source.name);
  }
  return std::make_shared<const BareStore>(std::move(settings));
}

FileTokens tokens_of_files(const MixtureSpec& spec, const TokenStore& files) {
  FileTokens tokens;
  int64_t entry = 0;
  for (const MixtureSource& source : spec.sources) {
    tokens.emplace_back();
    for (size_t i = 0; i < source.paths.size(); ++i) tokens.back().push_back(files.entry(entry++).tokens);
  }
  return tokens;
}

Mixture open_mixture(const MixtureSpec& spec, BareSettings settings) {
  const std::shared_ptr<const BareStore> files = mixture_files(spec, std::move(settings));
  Mixture mixture;
  if (spec.dialect == MixtureDialect::kOlmoCore) {
    mixture.store = std::make_shared<const HeadStore>(spec, files);
    mixture.dataset = fixed_dataset(mixture.store, spec.sequence_length);
    mixture.notes = files->notes();
    if (mixture.dataset->instances() < needed_instances(spec)) {
      mixture.notes.push_back(fmt::format("the mixture has {} instances, its steps need {}: the files are too small, which OLMo-core does not say",
                                          mixture.dataset->instances(), needed_instances(spec)));
    }
  } else {
    mixture.store = files;
    mixture.dataset = std::make_shared<const SampledDataset>(spec, files);
    mixture.notes = notes_of(*files, *mixture.dataset, spec.sequence_length);
  }
  return mixture;
}

std::shared_ptr<const TokenStore> mixture_store(const MixtureSpec& spec, BareSettings settings) {
  if (spec.dialect != MixtureDialect::kOlmoCore)
    throw ConfigError(Complaint{.where = "dialect", .found = std::string(name_of(spec.dialect)), .expected = "olmo-core", .hint = ""});
  return std::make_shared<const HeadStore>(spec, mixture_files(spec, std::move(settings)));
}

}  // namespace dz::data
