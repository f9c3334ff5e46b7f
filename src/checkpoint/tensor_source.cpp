#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/elements.h"
#include "checkpoint/safetensors.h"

namespace dz::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxIndex = 100'000'000;  // bytes; the index of Olmo-3-7B has 30 thousand

[[noreturn]] void refuse(const fs::path& path, const std::string& found, const std::string& expected) {
  throw CheckpointError(Complaint{.where = path.string(), .found = found, .expected = expected, .hint = ""});
}

struct Index {
  std::map<std::string, std::string> file_of;  // tensor name -> file name
  std::optional<double> total_size;            // some writers make it a float
};

Index read_index(const fs::path& path) {
  if (const int64_t size = File::open_read(path).size(); size > kMaxIndex)
    refuse(path, std::to_string(size) + " bytes", "an index of at most 100000000");
  const Json json = Json::parse(read_file(path), nullptr, false);
  if (!json.is_object()) refuse(path, "something that is not a JSON object", "{\"metadata\": ..., \"weight_map\": ...}");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) refuse(path, "no object \"weight_map\"", "tensor names mapped to file names");
  Index index;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string()) refuse(path, "weight_map: \"" + name + "\" without a file name", "a string");
    const std::string text = file.get<std::string>();
    // A name from outside becomes part of a path here, so it may not leave the directory.
    if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos || text.find('\0') != std::string::npos)
      refuse(path, "weight_map: \"" + name + "\" in \"" + text + "\"", "the name of a file in the same directory");
    index.file_of.emplace(name, text);
  }
  const auto metadata = json.find("metadata");
  if (metadata != json.end() && metadata->is_object() && metadata->contains("total_size") && (*metadata)["total_size"].is_number())
    index.total_size = (*metadata)["total_size"].get<double>();
  return index;
}

}  // namespace

TensorSource TensorSource::open(const fs::path& path) {
  TensorSource source;
  source.path_ = path;
  const fs::path single = path / "model.safetensors", index_path = path / "model.safetensors.index.json";
  std::error_code ignored;
  std::optional<Index> index;
  std::vector<fs::path> paths;
  if (!fs::is_directory(path, ignored)) {
    paths = {path};
  } else if (fs::exists(single, ignored)) {  // as transformers: the single file wins over an index
    paths = {single};
  } else if (fs::exists(index_path, ignored)) {
    index = read_index(index_path);
    std::set<std::string> files;
    for (const auto& [name, file] : index->file_of) files.insert(file);
    for (const std::string& file : files) paths.push_back(path / file);
  } else {
    throw InputError(Complaint{.where = path.string(),
                               .found = "neither model.safetensors nor model.safetensors.index.json",
                               .expected = "one of them",
                               .hint = "a native checkpoint is a directory step-N, a Hugging Face model one with config.json"});
  }

  int64_t total = 0;
  for (const fs::path& file_path : paths) {
    const int number = static_cast<int>(source.files_.size());
    const File& file = source.files_.emplace_back(File::open_read(file_path));
    SafetensorsHeader header = read_safetensors_header(file);
    if (number == 0) source.metadata_ = std::move(header.metadata);
    for (StoredTensor& tensor : header.tensors) {
      tensor.file = number;
      total += tensor.bytes;
      if (index) {
        const auto entry = index->file_of.find(tensor.name);
        if (entry == index->file_of.end()) refuse(file_path, "tensor \"" + tensor.name + "\"", "only tensors that " + index_path.string() + " lists");
        if (entry->second != file_path.filename())
          refuse(file_path, "tensor \"" + tensor.name + "\"", "it in " + entry->second + ", as " + index_path.string() + " says");
      }
      source.tensors_.push_back(std::move(tensor));
    }
  }
  std::sort(source.tensors_.begin(), source.tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  if (index) {
    for (const auto& [name, file] : index->file_of)
      if (!source.find(name)) refuse(path / file, "no tensor \"" + name + "\"", "it here, as " + index_path.string() + " says");
    if (index->total_size && *index->total_size != static_cast<double>(total))
      refuse(index_path, "total_size " + std::to_string(*index->total_size), std::to_string(total) + " as the files hold");
  }
  return source;
}

const StoredTensor* TensorSource::find(std::string_view name) const {
  const auto place = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

const StoredTensor& TensorSource::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (!tensor) refuse(path_, "no tensor \"" + std::string(name) + "\" among " + std::to_string(tensors_.size()), "it");
  return *tensor;
}

const fs::path& TensorSource::path_of(const StoredTensor& tensor) const { return files_[static_cast<size_t>(tensor.file)].path(); }

void TensorSource::read(const StoredTensor& tensor, std::span<std::byte> out) const {
  DZ_CHECK(static_cast<int64_t>(out.size()) == tensor.bytes, "tensor", tensor.name, "out", out.size(), "bytes", tensor.bytes);
  read_part(tensor, 0, out);
}

void TensorSource::read_part(const StoredTensor& tensor, int64_t first_byte, std::span<std::byte> out) const {
  const int64_t size = static_cast<int64_t>(out.size());
  DZ_CHECK(first_byte >= 0 && size <= tensor.bytes - first_byte, "tensor", tensor.name, "from", first_byte, "size", size, "of", tensor.bytes);
  try {
    files_[static_cast<size_t>(tensor.file)].read_at(tensor.offset + first_byte, out);
  } catch (const DataError&) {  // the header was checked against the size of the file
    refuse(path_of(tensor), "the file ends inside tensor \"" + tensor.name + "\"; it has shrunk since it was opened",
           std::to_string(tensor.offset + tensor.bytes) + " bytes");
  }
}

void TensorSource::read_f32(const StoredTensor& tensor, std::span<float> out) const {
  DZ_CHECK(static_cast<int64_t>(out.size()) == tensor.elements(), "tensor", tensor.name, "out", out.size(), "elements", tensor.elements());
  read_f32_part(tensor, 0, out);
}

void TensorSource::read_f32_part(const StoredTensor& tensor, int64_t first_element, std::span<float> out) const {
  if (!is_float_type(tensor.dtype)) refuse(path_of(tensor), "tensor \"" + tensor.name + "\" of dtype " + tensor.dtype, "F32, BF16 or F16");
  if (tensor.dtype == "F32") return read_part(tensor, first_element * 4, std::as_writable_bytes(out));
  std::vector<std::byte> piece(std::min(out.size() * 2, size_t{1} << 17));
  for (size_t begin = 0; begin < out.size(); begin += piece.size() / 2) {
    const size_t count = std::min(piece.size() / 2, out.size() - begin);
    const std::span<std::byte> bytes = std::span(piece).first(count * 2);
    read_part(tensor, (first_element + static_cast<int64_t>(begin)) * 2, bytes);
    widen(tensor.dtype, bytes, out.subspan(begin, count));
  }
}

}  // namespace dz::checkpoint
