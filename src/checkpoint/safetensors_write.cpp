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

std::string tensor_json(const RawTensor& tensor, size_t begin) {
  std::string text = quoted(tensor.name) + ":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
  for (const int64_t size : tensor.shape) text += (text.back() == '[' ? "" : ",") + std::to_string(size);
  return text + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.data.size()) + "]}";
}

std::string header_json(const std::vector<RawTensor>& tensors, const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += metadata_json(metadata);
  size_t begin = 0;
  for (const RawTensor& tensor : tensors) {
    if (text.size() > 1) text += ",";
    text += tensor_json(tensor, begin);
    begin += tensor.data.size();
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
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

void write_safetensors(std::vector<RawTensor> tensors, const Metadata& metadata, const ByteSink& sink) {
  std::sort(tensors.begin(), tensors.end(), [](const RawTensor& a, const RawTensor& b) {
    return std::tuple(-format_rank(a.dtype), a.name) < std::tuple(-format_rank(b.dtype), b.name);
  });
  std::vector<std::string_view> names;
  for (const RawTensor& tensor : tensors) {
    const int rank = format_rank(tensor.dtype);
    DZ_CHECK(rank >= 0, "tensor", tensor.name, "dtype", tensor.dtype);
    const int64_t bits = element_count(tensor.shape) * kFormatTypes[static_cast<size_t>(rank)].bits;
    DZ_CHECK(bits == static_cast<int64_t>(tensor.data.size()) * 8, "tensor", tensor.name, "bytes", tensor.data.size(), "bits", bits);
    if (tensor.name == "__metadata__") throw ConfigError("safetensors: __metadata__ cannot be the name of a tensor");
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw ConfigError("safetensors: two tensors are called \"" + std::string(*twice) + "\"");

  const std::string header = header_json(tensors, metadata);
  if (static_cast<int64_t>(header.size()) > kMaxHeader)
    throw ConfigError(Complaint{.where = "safetensors",
                                .found = "a header of " + std::to_string(header.size()) + " bytes for " + std::to_string(tensors.size()) + " tensors",
                                .expected = "at most 100000000, or no reader opens the file",
                                .hint = ""});
  const uint64_t length = header.size();
  sink(std::as_bytes(std::span(&length, 1)));
  sink(std::as_bytes(std::span(header.data(), header.size())));
  for (const RawTensor& tensor : tensors) sink(tensor.data);
}

void write_safetensors(std::span<const TensorView> tensors, const Metadata& metadata, const ByteSink& sink) {
  std::vector<RawTensor> list;
  list.reserve(tensors.size());
  for (const TensorView& tensor : tensors) list.push_back(raw(tensor));
  write_safetensors(std::move(list), metadata, sink);
}

}  // namespace dz::checkpoint
