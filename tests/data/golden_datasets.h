// The data sets that ai2-olmo-core made of the recorded token files (datasets.json, datasets.safetensors), and ours of the same arguments.
#pragma once

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "data/dataset_kinds.h"
#include "data/goldens.h"
#include "data/kind_fingerprints.h"
#include "data/memory_store.h"

namespace dz::test {

class GoldenDataset {
 public:
  explicit GoldenDataset(nlohmann::json description)
      : row(std::move(description)), args(row["args"]), name(row["name"]), kind(row["class"]), length(args["sequence_length"]) {
    const std::filesystem::path golden = DZ_GOLDEN "/data";
    const auto id = [&](const char* key) { return args.contains(key) ? args[key].get<int64_t>() : -1; };
    const data::Vocabulary vocabulary{
        .size = args["vocab_size"], .eos_id = id("eos_token_id"), .pad_id = id("pad_token_id"), .bos_id = id("bos_token_id")};
    store = std::make_shared<MemoryStore>(vocabulary, data::parse_token_type(args["dtype"].get<std::string>(), name));
    for (size_t i = 0; i < row["paths"].size(); ++i) {
      const std::string path = row["paths"][i];
      store->add_file(golden / path, path, args.contains("label_mask_paths") ? golden / args["label_mask_paths"][i].get<std::string>() : "");
    }
    if (args.contains("instance_filter_config")) {
      const nlohmann::json& config = args["instance_filter_config"];
      filter = data::RepetitionFilter{
          .min_period = config["repetition_min_period"], .max_period = config["repetition_max_period"], .max_count = config["repetition_max_count"]};
    }
  }

  int64_t target_length() const { return args.value("max_target_sequence_length", int64_t{0}); }
  data::PaddedSettings padded() const { return {.sequence_length = length, .filter = filter}; }
  data::PackedSettings packed() const {
    return {.sequence_length = length,
            .long_documents = data::parse_long_documents(args.value("long_doc_strategy", "truncate"), name),
            .source_group_size = args.value("source_group_size", int64_t{1}),
            .dialect = data::PackingDialect::kOlmoCore,
            .filter = filter};
  }
  data::InterleavedSettings interleaved() const {
    return {.sequence_length = length,
            .docs_per_instance = args["docs_per_instance"],
            .chunks_per_doc = args["chunks_per_doc"],
            .seed = args["seed"].get<uint64_t>(),
            .exempt = args.value("interleaving_exempt_paths", std::vector<std::string>()),
            .filter = filter};
  }

  std::shared_ptr<const data::Dataset> open() const {
    if (kind == "NumpyPaddedFSLDataset") return padded_dataset(store, padded());
    if (kind == "NumpyPackedFSLDataset") return packed_dataset(store, packed());
    if (kind == "NumpyInterleavedFSLDataset") return interleaved_dataset(store, interleaved());
    const auto fixed = data::fixed_dataset(store, length, target_length());
    return filter ? filtered_dataset(fixed, *filter) : fixed;
  }

  std::string fingerprint() const {
    if (kind == "NumpyPaddedFSLDataset") return olmo_core_fingerprint(*store, padded());
    if (kind == "NumpyPackedFSLDataset") return olmo_core_fingerprint(*store, packed());
    if (kind == "NumpyInterleavedFSLDataset") return olmo_core_fingerprint(*store, interleaved());
    return data::olmo_core_fingerprint(*store, target_length());
  }

  nlohmann::json row, args;
  std::string name, kind;
  int64_t length;
  std::shared_ptr<MemoryStore> store;
  std::optional<data::RepetitionFilter> filter;
};

inline std::vector<GoldenDataset> golden_datasets() {
  std::vector<GoldenDataset> list;
  const nlohmann::json golden = data_golden("datasets.json");
  for (const nlohmann::json& row : golden["datasets"]) list.emplace_back(row);
  return list;
}

inline GoldenDataset golden_dataset(const std::string& name) {
  for (GoldenDataset& dataset : golden_datasets()) {
    if (dataset.name == name) return dataset;
  }
  throw std::runtime_error("no data set " + name);
}

class GoldenTensors {
 public:
  GoldenTensors() : source_(checkpoint::TensorSource::open(DZ_GOLDEN "/data/datasets.safetensors")) {}

  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const checkpoint::StoredTensor& tensor = source_.at(name);
    std::vector<T> values(static_cast<size_t>(tensor.elements()));
    source_.read(tensor, std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  checkpoint::TensorSource source_;
};

inline std::vector<int64_t> all_instances(const data::Dataset& dataset) {
  std::vector<int64_t> ids(static_cast<size_t>(dataset.instances()));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return ids;
}

// An instance with its own memory.
struct OwnedRow {
  OwnedRow(const data::Dataset& dataset, int64_t id)
      : tokens(static_cast<size_t>(dataset.length(id)), -7), mask(tokens.size(), 1), row{.tokens = tokens, .label_mask = mask} {
    dataset.read(id, row);
  }
  std::vector<int32_t> tokens;
  std::vector<uint8_t> mask;
  data::Row row;
};

}  // namespace dz::test
