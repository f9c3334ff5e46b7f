#include "data/token_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "data/file_list.h"

namespace dz::data {
namespace {

constexpr int64_t kMostListBytes = int64_t{256} << 20;

void add_file(TokenInputs& inputs, const std::string& path) {
  inputs.paths.push_back(path);
  inputs.labels.push_back(fs::path(path).filename().string());
}

void add_directory(TokenInputs& inputs, const fs::path& directory) {
  std::vector<std::string> files;
  for (const std::string ending : {".npy", ".bin"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      if (entry.path().extension() == ending && entry.is_regular_file()) files.push_back(entry.path().string());
    }
    if (error) throw InputError(directory.string() + ": cannot list the directory: " + error.message());
    if (!files.empty()) break;
  }
  if (files.empty())
    throw InputError(
        Complaint{.where = directory.string(), .found = "no token file", .expected = "*.npy or *.bin files, or token shards", .hint = ""});
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add_file(inputs, file);
}

void add_shards(TokenInputs& inputs, const fs::path& directory) {
  if (!inputs.paths.empty())
    throw UsageError(Complaint{.where = directory.string(), .found = "token shards beside other files", .expected = "one or the other", .hint = ""});
  const fs::path path = directory / "manifest.json";
  inputs.manifest = parse_token_manifest(read_file(path), path.string());
  for (const Source& source : inputs.manifest->sources) {
    const Stream& stream = source.stream(Split::kTrain);
    if (stream.files.size() > 1) {
      inputs.notes.push_back(
          fmt::format("source {}: {} files, each cut by itself; train joins the files of a source", source.name, stream.files.size()));
    }
    for (const ShardFile& file : stream.files) {
      inputs.paths.push_back((directory / file.path).string());
      inputs.labels.push_back(source.name);
      inputs.sha256.emplace_back(file.sha256);
    }
  }
}

void add_list(TokenInputs& inputs, const std::string& path, std::string_view text) {
  const fs::path directory = fs::path(path).parent_path();
  size_t count = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    add_file(inputs, (directory / line).string());
    ++count;
  }
  if (count == 0) throw DataError(Complaint{.where = path, .found = "no path", .expected = "one path a line, or a mix", .hint = ""});
}

void add_argument(TokenInputs& inputs, const std::string& argument, const MixPlace& place) {
  std::error_code ignored;
  const fs::path path = argument;
  if (fs::is_directory(path, ignored)) return fs::exists(path / "manifest.json", ignored) ? add_shards(inputs, path) : add_directory(inputs, path);
  for (const std::string& file : expand(argument)) {
    if (fs::path(file).extension() != ".txt") {
      add_file(inputs, file);
      continue;
    }
    const std::string text = read_list(file);
    if (text.find("{TOKENIZER}") == std::string::npos) {
      add_list(inputs, file, text);
      continue;
    }
    for (const MixEntry& entry : read_mix(file, place)) {
      inputs.paths.push_back(entry.path);
      inputs.labels.push_back(entry.label);
    }
  }
}

}  // namespace

std::string read_list(const std::string& path) {
  const int64_t bytes = File::open_read(path).size();
  if (bytes > kMostListBytes)
    throw DataError(Complaint{.where = path, .found = fmt::format("{} bytes", bytes), .expected = "a list of files", .hint = "is it a token file?"});
  return read_file(path);
}

std::vector<MixEntry> read_mix(const std::string& path, const MixPlace& place) {
  if (place.base_directory.empty() || place.tokenizer.empty()) {
    throw UsageError(Complaint{.where = path,
                               .found = place.base_directory.empty() ? "a mix without --base-dir" : "a mix without --tokenizer",
                               .expected = "both",
                               .hint = "its paths are below the one and named after the other"});
  }
  const std::string name = place.name.empty() ? fs::path(path).stem().string() : place.name;
  std::vector<MixEntry> entries = parse_mix(read_list(path), tokenizer_folder(name, place.tokenizer), path);
  if (entries.empty()) throw DataError(Complaint{.where = path, .found = "no entry", .expected = "label,path a line", .hint = ""});
  for (MixEntry& entry : entries) entry.path = below(place.base_directory, entry.path);
  return entries;
}

TokenInputs find_token_files(const std::vector<std::string>& arguments, const MixPlace& place) {
  TokenInputs inputs;
  for (const std::string& argument : arguments) {
    if (inputs.manifest)
      throw UsageError(Complaint{.where = argument, .found = "token shards beside other files", .expected = "one or the other", .hint = ""});
    add_argument(inputs, argument, place);
  }
  return inputs;
}

}  // namespace dz::data
