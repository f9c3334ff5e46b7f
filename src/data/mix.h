// The mix files of OLMo-core: one "label,path" a line, where the path holds {TOKENIZER}. The order of the lines is the order of the files, and so
// of the instances (OLMo-core: data/mixes/__init__.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dz::data {

struct MixEntry {
  std::string label;
  std::string path;  // below the base directory, {TOKENIZER} replaced
};

// The name of a released mix: aliases become the name itself, anything else stays.
std::string canonical_mix_name(std::string_view name);

// What stands for {TOKENIZER} in a mix: mostly the tokenizer's identifier ("allenai/dolma2-tokenizer"), but some mixes keep their files under
// another name. `mix_name` may be an alias or no released mix at all.
std::string tokenizer_folder(std::string_view mix_name, std::string_view tokenizer);

// DataError naming `where`:line for a line that is not label,path or whose path lacks {TOKENIZER}. Blank lines and lines that start with # are
// passed over; lines end with LF, CRLF or CR, the last one also with nothing. A line that comes twice is a file that comes twice.
std::vector<MixEntry> parse_mix(std::string_view text, std::string_view folder, const std::string& where);

// Base directory and path with one slash between them, as OLMo-core joins them.
std::string below(std::string_view base_directory, std::string_view path);

// What tells two readings of a mix apart.
struct MixSummary {
  int64_t count = 0;
  std::string paths_sha256, labels_sha256;  // of the paths or labels with a newline between them
  std::string first, last;                  // paths; empty when there are none
  int64_t duplicates = 0;                   // entries whose path came before
  int64_t basenames = 0;                    // different last parts of paths
  std::vector<std::string> labels;          // in order of their first entry
};
MixSummary summarize(const std::vector<MixEntry>& entries);

}  // namespace dz::data
