#include "text/input_files.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace dz::text {
namespace fs = std::filesystem;
namespace {

constexpr std::pair<std::string_view, Format> kEndings[] = {
    {".txt", Format::kText},  {".text", Format::kText}, {".md", Format::kText},    {".rst", Format::kText},        {".pod", Format::kText},
    {".html", Format::kHtml}, {".htm", Format::kHtml},  {".xhtml", Format::kHtml}, {".jsonl", Format::kJsonLines}, {".ndjson", Format::kJsonLines},
};

std::optional<Format> format_of(fs::path path) {
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const auto& [known, format] : kEndings)
    if (ending == known) return format;
  return std::nullopt;
}

// Size and time of what can be read; opening complains about the rest.
InputFile describe(const fs::path& path, Format format) {
  InputFile file{.path = path.string(), .format = format};
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (!error) file.bytes = static_cast<int64_t>(bytes);
  const fs::file_time_type time = fs::last_write_time(path, error);
  if (!error) file.modified = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return file;
}

void add_directory(const fs::path& root, InputFiles& out) {
  std::error_code error;
  const auto first = static_cast<std::ptrdiff_t>(out.files.size());
  fs::recursive_directory_iterator it(root, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;  // a link to nowhere is no text
    if (it->is_directory(ignored)) continue;
    const std::optional<Format> format = it->is_regular_file(ignored) ? format_of(it->path()) : std::nullopt;
    if (format) {
      out.files.push_back(describe(it->path(), *format));
    } else {
      ++out.skipped;
    }
  }
  if (error) throw InputError(root.string() + ": cannot read the directory: " + error.message());
  std::sort(out.files.begin() + first, out.files.end(), [](const InputFile& a, const InputFile& b) { return a.path < b.path; });
}

}  // namespace

InputFiles list_inputs(const std::vector<fs::path>& roots) {
  InputFiles out;
  for (const fs::path& root : roots) {
    std::error_code error;
    const fs::file_status status = fs::status(root, error);
    if (!fs::exists(status))
      throw InputError(Complaint{.where = root.string(), .found = "nothing there", .expected = "a file or directory of text", .hint = ""});
    if (fs::is_directory(status)) {
      add_directory(root, out);
    } else {
      out.files.push_back(describe(root, format_of(root).value_or(Format::kText)));
    }
  }
  for (const InputFile& file : out.files) out.bytes += file.bytes;
  return out;
}

}  // namespace dz::text
