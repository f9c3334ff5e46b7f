// From a config file to a checked configuration, and from a recipe to the identity of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "train/recipe.h"

namespace dz::train {

// Reads and resolves `path` after applying `sets` ("section.key=value"). ConfigError with file, line and key; UsageError for a bad --set;
// InputError when the file is missing.
Config load_config(const fs::path& path, const std::vector<std::string>& sets);
Config parse_config(const std::string& text, const std::string& name, const fs::path& base, const std::vector<std::string>& sets);

// Every field with its default and a line of help.
std::string config_help();

// The sections as YAML, as a run directory keeps them.
std::string recipe_yaml(const Recipe& recipe);
std::string topology_yaml(const Topology& topology);
std::string run_yaml(const RunSettings& run);

// What a run is: the fields of the recipe except its paths, and the digests of what the paths lead to.
struct Identity {
  FlatConfig fields;         // "recipe.optimizer.lr" -> "0.0003"; "recipe.data.digest", "recipe.init.digest" last
  std::string hash() const;  // SHA-256 over "key=value\n"
};

// Keys of what initial weights and moments from files are; absent when they are not from files.
inline constexpr const char* kInitDigest = "recipe.init.digest";
inline constexpr const char* kMomentsDigest = "recipe.init_moments.digest";

Identity identify(const Recipe& recipe, const std::string& data_digest, const std::string& init_digest, const std::string& moments_digest = "");
std::string to_json(const Identity& identity);
Identity parse_identity(std::string_view json, const std::string& where);  // CheckpointError

// One line for each key that differs: "recipe.optimizer.lr        run: 0.0003        now: 0.0004".
std::vector<std::string> differences(const Identity& run, const Identity& now);

}  // namespace dz::train
