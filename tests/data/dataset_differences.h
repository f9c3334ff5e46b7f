// What distinguishes a data set from the one that ai2-olmo-core made of the same files.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "data/document_table.h"
#include "data/golden_datasets.h"
#include "data/loader.h"

namespace dz::test {

// Lengths of the documents of an instance as document masks have them.
inline std::vector<int64_t> visible_lengths(const data::Batch& batch, int64_t instance) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch.sequence_length; ++i) {
    if (batch.first_visible[static_cast<size_t>(instance * batch.sequence_length + i)] == i) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

// What of a golden data set differs from `dataset`; empty when nothing does.
inline std::vector<std::string> differences(const GoldenDataset& golden, const data::Dataset& dataset, const GoldenTensors& tensors) {
  std::vector<std::string> found;
  const std::string& name = golden.name;
  if (dataset.instances() != golden.row["length"].get<int64_t>()) return {"length"};
  const data::Batch batch = data::make_batch(dataset, all_instances(dataset), true);
  const auto inputs = tensors.read<uint32_t>(name + ".input_ids");
  if (!std::equal(inputs.begin(), inputs.end(), batch.tokens.begin(), batch.tokens.end(),
                  [](uint32_t a, int32_t b) { return a == static_cast<uint32_t>(b); }))
    found.push_back("input_ids");
  auto labels = tensors.read<int32_t>(name + ".labels");
  std::replace(labels.begin(), labels.end(), -100, data::kNoTarget);
  if (batch.targets != labels) found.push_back("labels");
  std::vector<uint8_t> label_mask, instance_mask;
  std::vector<std::vector<int64_t>> lengths;
  for (int64_t id = 0; id < dataset.instances(); ++id) {
    const OwnedRow row(dataset, id);
    label_mask.insert(label_mask.end(), row.mask.begin(), row.mask.end());
    instance_mask.push_back(row.row.filtered ? 0 : 1);
    lengths.push_back(data::document_lengths(row.tokens, dataset.vocabulary()));
    if (lengths.back() != visible_lengths(batch, id)) found.push_back("first_visible");
  }
  if (tensors.has(name + ".label_mask") && label_mask != tensors.read<uint8_t>(name + ".label_mask")) found.push_back("label_mask");
  const std::vector<uint8_t> expected =
      tensors.has(name + ".instance_mask") ? tensors.read<uint8_t>(name + ".instance_mask") : std::vector<uint8_t>(instance_mask.size(), 1);
  if (instance_mask != expected) found.push_back("instance_mask");
  if (tensors.has(name + ".doc_lens")) {
    const auto cumulative = tensors.read<int32_t>(name + ".cu_doc_lens");
    if (data::cumulative_lengths(lengths) != std::vector<int64_t>(cumulative.begin(), cumulative.end())) found.push_back("cu_doc_lens");
    const auto padded = tensors.read<int32_t>(name + ".doc_lens");
    const size_t width = padded.size() / lengths.size();
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i].resize(width, 0);
      if (!std::equal(lengths[i].begin(), lengths[i].end(), padded.begin() + static_cast<int64_t>(i * width))) found.push_back("doc_lens");
    }
  }
  return found;
}

}  // namespace dz::test
