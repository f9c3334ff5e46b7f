// The tokens of a source mixture (source_mixture.h), to train on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/bare_store.h"
#include "data/dataset.h"
#include "data/source_mixture.h"

namespace dz::data {

struct Mixture {
  // olmo-core: an entry for each file and repetition, as long as its share; name: the file, label: the source, bytes: share * width, which is
  // what OLMo-core's fingerprint of a mixture takes. sampled: the whole files.
  std::shared_ptr<const TokenStore> store;
  std::shared_ptr<const Dataset> dataset;  // spec.sequence_length; sampled: instances source by source, one table entry a file and repetition
  std::vector<std::string> notes;          // for people: of the files, and which sources and files give no instance
};

// `settings` says type, vocabulary, cache and so on; its paths and labels come from the spec, and it has no masks. Errors as BareStore and
// as the allocation.
Mixture open_mixture(const MixtureSpec& spec, BareSettings settings);

// The files of the spec, source by source, and the tokens in each.
std::shared_ptr<const BareStore> mixture_files(const MixtureSpec& spec, BareSettings settings);
FileTokens tokens_of_files(const MixtureSpec& spec, const TokenStore& files);

// olmo-core only: the store alone. ConfigError for another dialect.
std::shared_ptr<const TokenStore> mixture_store(const MixtureSpec& spec, BareSettings settings);

}  // namespace dz::data
