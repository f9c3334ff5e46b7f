// What the verbs that read token files of others have in common: how wide the tokens are and which ids mean something.
#pragma once

#include <cstdint>
#include <string>

#include "data/bare_store.h"
#include "data/token_inputs.h"

namespace CLI {
class App;
}

namespace dz::cli {

struct TokenOptions {
  std::string tokenizer, dtype;
  int64_t vocab_size = -1, eos = -1, bos = -1, pad = -1;  // -1: not given
  std::string base_directory, mix_name;

  // --dtype, --vocab-size, --eos, --bos, --pad, --base-dir, --mix-name
  void add_to(CLI::App& verb);
  // The tokenizer's identifier where the name is a known one, else the name.
  std::string identifier() const;
  data::MixPlace mix_place() const { return {.base_directory = base_directory, .name = mix_name, .tokenizer = identifier()}; }
  // Type and vocabulary: from the manifest when there is one, else from the known tokenizer, and the options over either. UsageError when
  // something is missing, or contradicts the manifest.
  data::BareSettings settings(const data::TokenManifest* manifest) const;
};

}  // namespace dz::cli
