// Reads and checks a safetensors header. A parser by events, not a tree: memory stays in proportion to the tensors that the header names.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_dtypes.h"

namespace dz::checkpoint {
namespace {

using Json = nlohmann::json;

// One entry of the header while it is being read.
struct Entry {
  StoredTensor tensor;
  std::vector<int64_t> offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Receives the events of nlohmann's parser. The header has a fixed shape, so `place_` says it all; a callback that returns false ends the
// parse with `problem`.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  std::vector<Entry> entries;
  Metadata metadata;
  std::string problem;

  bool start_object(std::size_t) override {
    if (place_ == Place::kBegin) return go(Place::kTop);
    if (place_ == Place::kEntryOrMetadata) return go(name_ == "__metadata__" ? Place::kMetadata : Place::kEntry);
    return unexpected("an object");
  }
  bool end_object() override {
    if (place_ == Place::kTop) return go(Place::kEnd);
    if (place_ == Place::kEntry && !entry_complete()) return false;
    return go(Place::kTop);
  }
  bool key(string_t& key) override {
    if (place_ == Place::kTop) {
      if (!names_.insert(key).second) return fail("the name \"" + key + "\" appears twice");
      name_ = key;
      if (name_ != "__metadata__") entries.emplace_back().tensor.name = name_;
      return go(Place::kEntryOrMetadata);
    }
    if (place_ == Place::kMetadata) {
      if (metadata.contains(key)) return fail("__metadata__: the key \"" + key + "\" appears twice");
      name_ = key;
      return go(Place::kMetadataValue);
    }
    return field(key);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadataValue) {
      metadata.emplace(name_, value);
      return go(Place::kMetadata);
    }
    if (place_ != Place::kDtype) return unexpected("a string");
    if (format_rank(value) < 0) return fail(tensor_name() + ": unknown dtype \"" + value + "\"");
    entries.back().tensor.dtype = value;
    return go(Place::kEntry);
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::kShape) return go(Place::kShapeItems);
    if (place_ == Place::kOffsets) return go(Place::kOffsetItems);
    return unexpected("a list");
  }
  bool end_array() override { return go(Place::kEntry); }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShapeItems && place_ != Place::kOffsetItems) return unexpected("a number");
    if (value > static_cast<uint64_t>(INT64_MAX)) return fail(tensor_name() + ": the number " + std::to_string(value) + " is out of range");
    (place_ == Place::kShapeItems ? entries.back().tensor.shape : entries.back().offsets).push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t value) override { return unexpected("the negative number " + std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected("the number " + text); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool null() override { return unexpected("null"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override { return fail(error.what()); }

 private:
  enum class Place { kBegin, kTop, kEntryOrMetadata, kMetadata, kMetadataValue, kEntry, kDtype, kShape, kShapeItems, kOffsets, kOffsetItems, kEnd };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool fail(std::string text) {
    if (problem.empty()) problem = std::move(text);
    return false;
  }
  std::string tensor_name() const { return "tensor \"" + name_ + "\""; }
  bool unexpected(const std::string& what) {
    const bool in_metadata = place_ == Place::kMetadataValue || name_ == "__metadata__";
    if (place_ == Place::kBegin) return fail("the header is not an object");
    return fail((in_metadata ? std::string("__metadata__ (strings only)") : tensor_name()) + ": unexpected " + what);
  }
  bool field(const std::string& key) {
    Entry& entry = entries.back();
    const bool dtype = key == "dtype", shape = key == "shape", offsets = key == "data_offsets";
    if (!dtype && !shape && !offsets) return fail(tensor_name() + ": unknown field \"" + key + "\"");
    bool& seen = dtype ? entry.has_dtype : shape ? entry.has_shape : entry.has_offsets;
    if (seen) return fail(tensor_name() + ": the field \"" + key + "\" appears twice");
    seen = true;
    return go(dtype ? Place::kDtype : shape ? Place::kShape : Place::kOffsets);
  }
  bool entry_complete() {
    const Entry& entry = entries.back();
    if (!entry.has_dtype || !entry.has_shape || !entry.has_offsets) return fail(tensor_name() + ": dtype, shape or data_offsets is missing");
    if (entry.offsets.size() != 2) return fail(tensor_name() + ": data_offsets has " + std::to_string(entry.offsets.size()) + " numbers, not 2");
    return true;
  }

  Place place_ = Place::kBegin;
  std::string name_;
  std::unordered_set<std::string> names_;
};

[[noreturn]] void refuse(const File& file, const std::string& found, const std::string& expected) {
  throw CheckpointError(Complaint{
      .where = file.path().string(), .found = found, .expected = expected, .hint = "not a whole safetensors file: fetch or export it again"});
}

[[noreturn]] void refuse_tensor(const File& file, const StoredTensor& tensor, const std::string& found, const std::string& expected) {
  refuse(file, "tensor \"" + tensor.name + "\": " + found, expected);
}

// Bytes that shape and dtype ask for; refused where the product leaves 63 bits, even if a later dimension is 0 (as the library does).
int64_t bytes_of(const File& file, const StoredTensor& tensor) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t size : tensor.shape) overflow = overflow || __builtin_mul_overflow(count, size, &count);
  int64_t bits = 0;
  overflow = overflow || __builtin_mul_overflow(count, int64_t{kFormatTypes[static_cast<size_t>(format_rank(tensor.dtype))].bits}, &bits);
  if (overflow) refuse_tensor(file, tensor, "a shape whose size overflows", "a size below 2^63");
  if (bits % 8 != 0) refuse_tensor(file, tensor, std::to_string(bits) + " bits", "whole bytes");
  return bits / 8;
}

// Offsets must tile the data without hole or overlap, from 0 to the end of the file.
void place_tensors(const File& file, std::vector<Entry>& entries, int64_t data_bytes, SafetensorsHeader& header) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  int64_t end = 0;
  for (Entry& entry : entries) {
    StoredTensor& tensor = entry.tensor;
    if (entry.offsets[0] != end || entry.offsets[1] < end)
      refuse_tensor(file, tensor, "data_offsets [" + std::to_string(entry.offsets[0]) + ", " + std::to_string(entry.offsets[1]) + "]",
                    "a range that begins at " + std::to_string(end));
    tensor.bytes = entry.offsets[1] - entry.offsets[0];
    const int64_t wanted = bytes_of(file, tensor);
    if (tensor.bytes != wanted)
      refuse_tensor(file, tensor, std::to_string(tensor.bytes) + " bytes", std::to_string(wanted) + " for its shape and dtype");
    end = entry.offsets[1];
    // No overflow: data_offset is at most 100,000,008, and a sum that passed 2^63 would be far beyond the file.
    if (end > data_bytes) refuse_tensor(file, tensor, std::to_string(data_bytes) + " bytes of data in the file", "at least " + std::to_string(end));
    tensor.offset = header.data_offset + entry.offsets[0];
    header.tensors.push_back(std::move(tensor));
  }
  if (end != data_bytes) refuse(file, std::to_string(data_bytes) + " bytes of data", std::to_string(end) + " as the header says");
}

std::string read_json_text(const File& file, int64_t file_bytes) {
  if (file_bytes < 8) refuse(file, std::to_string(file_bytes) + " bytes", "at least 8");
  uint64_t length = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > static_cast<uint64_t>(kMaxHeader)) refuse(file, "a header of " + std::to_string(length) + " bytes", "at most 100000000");
  if (static_cast<int64_t>(length) > file_bytes - 8)
    refuse(file, "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(file_bytes), "a header inside the file");
  std::string text(static_cast<size_t>(length), '\0');
  file.read_at(8, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const File& file) {
  const int64_t file_bytes = file.size();
  std::string text = read_json_text(file, file_bytes);
  SafetensorsHeader header;
  header.data_offset = 8 + static_cast<int64_t>(text.size());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  // The parser takes a byte-order mark, and a NUL as the end of the text; neither may pass.
  if (text.empty() || text.front() != '{' || text.back() != '}' || text.find('\0') != std::string::npos)
    refuse(file, "a header that is not one JSON object", "'{' first, '}' last, then only spaces");
  HeaderHandler handler;
  if (!Json::sax_parse(text, &handler)) refuse(file, "in the header: " + handler.problem, "");
  header.metadata = std::move(handler.metadata);
  header.tensors.reserve(handler.entries.size());
  place_tensors(file, handler.entries, file_bytes - header.data_offset, header);
  return header;
}

}  // namespace dz::checkpoint
