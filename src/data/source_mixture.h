// A mixture of sources by ratio: how many tokens come from each file. Two dialects (docs/data.md, "Mixtures"):
// - olmo-core: what OLMo-core's SourceMixtureDatasetConfig gives, number for number: the head of each file (data/source_mixture.py);
// - sampled, ours: instances by largest remainder, a seeded sample of each file, and an error instead of a mixture that is short.
// Counting only; mixture_data.h reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/mix.h"

namespace dz::data {

enum class MixtureDialect { kSampled, kOlmoCore };
std::string_view name_of(MixtureDialect dialect);  // "sampled", "olmo-core"

struct MixtureSource {
  std::string name;
  double ratio = 0;                // of the requested tokens
  std::vector<std::string> paths;  // a name with * ? or [ stands for the files that match, in order of their bytes
  double max_repetition = 1;       // how often an instance may come
  double max_source_fraction = 1;  // how much of the source may be used
};

struct MixtureSpec {
  std::vector<MixtureSource> sources;
  int64_t requested_tokens = 0;
  int64_t sequence_length = 0;
  int64_t batch_tokens = 0;  // of a step; the mixture is for whole steps
  MixtureDialect dialect = MixtureDialect::kSampled;
  uint64_t seed = 0;  // of the sample; olmo-core has none
};

// YAML or JSON. ConfigError naming file:line and key: unknown, missing and repeated keys, numbers out of range, sources without files or with
// one name. Relative paths are below the spec's directory, and globs are expanded: InputError when nothing matches.
//
// With a mix (whole paths) a source may have `labels` instead of paths: the files of the mix with one of these labels, in its order. A source
// with neither has the files whose label is its name.
MixtureSpec parse_mixture_spec(const std::string& text, const std::string& where, const std::string& directory,
                               const std::vector<MixEntry>* mix = nullptr);
MixtureSpec read_mixture_spec(const std::string& path, const std::vector<MixEntry>* mix = nullptr);

// Tokens of each file of each source.
using FileTokens = std::vector<std::vector<int64_t>>;

// Steps that the requested tokens need, times instances of a step.
int64_t needed_instances(const MixtureSpec& spec);

struct MixtureEntry {
  int64_t source = 0;
  int64_t file = 0;    // of the source
  int64_t tokens = 0;  // from the start of the file; a multiple of the sequence length, 0 possible
};

// As OLMo-core; when the files are too small for the last instances it is silently short, so `instances` may be below needed_instances().
// ConfigError where OLMo-core refuses (ratios that do not sum to 1, a source with too few tokens), and for more than 2^24 entries.
std::vector<MixtureEntry> allocate_as_olmo_core(const MixtureSpec& spec, const FileTokens& tokens);

struct SampledFile {
  int64_t instances = 0;  // in the file
  int64_t usable = 0;     // that may be used; a sample when max_source_fraction is below 1
  int64_t rest = 0;       // of these, that come once more than `rounds` times
};
struct SampledSource {
  int64_t instances = 0;  // in the mixture
  int64_t rounds = 0;     // how often every usable instance comes
  std::vector<SampledFile> files;
};

// needed_instances() go to the sources by largest remainder of their ratios (equal ones: the first), and within a source to its files by
// largest remainder of what is in them. ConfigError "N needed, M possible" when a source has too few.
std::vector<SampledSource> allocate_sampled(const MixtureSpec& spec, const FileTokens& tokens);

}  // namespace dz::data
