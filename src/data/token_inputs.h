// Which token files a person means by an argument: a directory of token shards, a directory, pattern or list of files of others, or a mix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/mix.h"
#include "data/token_shards.h"

namespace dz::data {

struct MixPlace {
  std::string base_directory;  // what the paths of a mix are below
  std::string name;            // of the mix; empty: the file's name without its ending
  std::string tokenizer;       // identifier
};

struct TokenInputs {
  std::vector<std::string> paths, labels;          // one label a path
  std::vector<std::optional<std::string>> sha256;  // where a manifest of ours records it; one a path, or none at all
  std::optional<TokenManifest> manifest;           // of a directory of token shards: it says type and vocabulary
  std::vector<std::string> notes;
};

// Each argument is one of
// - a directory with our manifest.json: the files of its train split, which must be the only argument;
// - another directory: its *.npy files, or, when there are none, its *.bin files, in the order of their names;
// - a pattern: the files that match;
// - NAME.txt: a mix when one of its lines has {TOKENIZER}, else a list of files, one path a line, relative to the list's directory;
// - any other file: a token file.
// The label is the mix's, the source of the shards, or the file's name. InputError: nothing there; UsageError: a mix without a base directory.
TokenInputs find_token_files(const std::vector<std::string>& arguments, const MixPlace& place);

// The text of a mix or list; DataError above 256 MiB.
std::string read_list(const std::string& path);

// A mix file's entries with their whole paths.
std::vector<MixEntry> read_mix(const std::string& path, const MixPlace& place);

}  // namespace dz::data
