#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_dtypes.h"

namespace dz::checkpoint {
namespace {

// serde_json and nlohmann escape alike: quote, backslash, the short forms, \u00xx in lower case; everything else stays UTF-8.
std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw ConfigError("safetensors: the name \"" + text + "\" is not valid UTF-8");
  }
}

std::string metadata_json(const Metadata& metadata) {
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) text += (text.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
  return text + "}";
}

std::string tensor_json(const StoredTensor& tensor, int64_t begin) {
  std::string text = quoted(tensor.name) + ":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
  for (const int64_t size : tensor.shape) text += (text.back() == '[' ? "" : ",") + std::to_string(size);
  return text + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes) + "]}";
}

std::string header_json(const std::vector<StoredTensor>& tensors, const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += metadata_json(metadata);
  for (const StoredTensor& tensor : tensors) {
    if (text.size() > 1) text += ",";
    text += tensor_json(tensor, tensor.offset);
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void refuse_bad_names(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == "__metadata__") throw ConfigError("safetensors: __metadata__ cannot be the name of a tensor");
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw ConfigError("safetensors: two tensors are called \"" + std::string(*twice) + "\"");
}

}  // namespace

int format_rank(std::string_view name) {
  for (size_t i = 0; i < kFormatTypes.size(); ++i)
    if (kFormatTypes[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string_view dtype_name(DType dtype) {
  for (const FormatType& type : kFormatTypes)
    if (type.ours == dtype) return type.name;
  DZ_CHECK(false, "dtype", static_cast<int>(dtype));
  return "";
}

std::optional<DType> dtype_of(std::string_view name) {
  const int rank = format_rank(name);
  return rank < 0 ? std::nullopt : kFormatTypes[static_cast<size_t>(rank)].ours;
}

RawTensor raw(const TensorView& tensor) {
  return {tensor.name, std::string(dtype_name(tensor.dtype)), tensor.shape, {static_cast<const std::byte*>(tensor.data), tensor.bytes()}};
}

int64_t TensorSpec::bytes() const {
  const int rank = format_rank(dtype);
  DZ_CHECK(rank >= 0, "tensor", name, "dtype", dtype);
  return element_count(shape) * kFormatTypes[static_cast<size_t>(rank)].bits / 8;
}

SafetensorsPlan plan_safetensors(std::vector<TensorSpec> tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return std::tuple(-format_rank(a.dtype), a.name) < std::tuple(-format_rank(b.dtype), b.name);
  });
  SafetensorsPlan plan;
  int64_t end = 0;
  for (TensorSpec& tensor : tensors) {
    const int64_t bytes = tensor.bytes();
    plan.tensors.push_back(
        {.name = std::move(tensor.name), .dtype = std::move(tensor.dtype), .shape = std::move(tensor.shape), .offset = end, .bytes = bytes});
    end += bytes;
  }
  refuse_bad_names(plan.tensors);
  const std::string header = header_json(plan.tensors, metadata);
  if (static_cast<int64_t>(header.size()) > kMaxHeader)
    throw ConfigError(
        Complaint{.where = "safetensors",
                  .found = "a header of " + std::to_string(header.size()) + " bytes for " + std::to_string(plan.tensors.size()) + " tensors",
                  .expected = "at most 100000000, or no reader opens the file",
                  .hint = ""});
  const uint64_t length = header.size();
  plan.head.assign(reinterpret_cast<const char*>(&length), sizeof length);
  plan.head += header;
  for (StoredTensor& tensor : plan.tensors) tensor.offset += static_cast<int64_t>(plan.head.size());
  plan.file_bytes = static_cast<int64_t>(plan.head.size()) + end;
  return plan;
}

void write_safetensors(std::vector<RawTensor> tensors, const Metadata& metadata, const ByteSink& sink) {
  std::vector<TensorSpec> specs;
  std::map<std::string_view, std::span<const std::byte>> data;  // a name that comes twice is refused by the plan
  for (const RawTensor& tensor : tensors) {
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
    DZ_CHECK(specs.back().bytes() == static_cast<int64_t>(tensor.data.size()), "tensor", tensor.name, "bytes", tensor.data.size());
    data.emplace(tensor.name, tensor.data);
  }
  const SafetensorsPlan plan = plan_safetensors(std::move(specs), metadata);
  sink(std::as_bytes(std::span(plan.head)));
  for (const StoredTensor& tensor : plan.tensors) sink(data.at(tensor.name));
}

void write_safetensors(std::span<const TensorView> tensors, const Metadata& metadata, const ByteSink& sink) {
  std::vector<RawTensor> list;
  list.reserve(tensors.size());
  for (const TensorView& tensor : tensors) list.push_back(raw(tensor));
  write_safetensors(std::move(list), metadata, sink);
}

}  // namespace dz::checkpoint
