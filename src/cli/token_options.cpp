#include "cli/token_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "data/tokenizer_presets.h"

namespace dz::cli {
namespace {

void take(const char* option, int64_t given, bool fixed, int64_t& value) {
  if (given < 0) return;
  if (fixed && given != value) {
    throw UsageError(
        Complaint{.where = option, .found = std::to_string(given), .expected = fmt::format("{}, as in manifest.json", value), .hint = ""});
  }
  value = given;
}

}  // namespace

void TokenOptions::add_to(CLI::App& verb) {
  verb.add_option("--dtype", dtype, "uint16 or uint32; by the tokenizer unless given");
  verb.add_option("--vocab-size", vocab_size, "ids are below; by the tokenizer unless given");
  verb.add_option("--eos", eos, "id that ends a document; by the tokenizer unless given");
  verb.add_option("--bos", bos, "id that begins one, if any");
  verb.add_option("--pad", pad, "id of padding, if any");
  verb.add_option("--base-dir", base_directory, "directory that the paths of a mix are below");
  verb.add_option("--mix-name", mix_name, "of a released mix; the file's name unless given");
}

std::string TokenOptions::identifier() const {
  const auto preset = data::tokenizer_preset(tokenizer);
  return preset ? std::string(preset->identifier) : tokenizer;
}

data::BareSettings TokenOptions::settings(const data::TokenManifest* manifest) const {
  data::BareSettings settings{.paths = {}, .labels = {}, .masks = {}, .vocabulary = {}, .cache_directory = {}};
  const auto preset = data::tokenizer_preset(tokenizer);
  if (preset) settings.vocabulary = preset->vocabulary;
  data::Vocabulary& vocabulary = settings.vocabulary;
  if (manifest) {
    vocabulary.size = manifest->vocab_size;
    vocabulary.eos_id = manifest->eos_id;
    if (vocabulary.pad_id >= vocabulary.size) vocabulary.pad_id = -1;
    if (vocabulary.bos_id >= vocabulary.size) vocabulary.bos_id = -1;
  }
  take("--vocab-size", vocab_size, manifest != nullptr, vocabulary.size);
  take("--eos", eos, manifest != nullptr, vocabulary.eos_id);
  take("--bos", bos, false, vocabulary.bos_id);
  take("--pad", pad, false, vocabulary.pad_id);
  if (vocabulary.size == 0) {
    throw UsageError(
        Complaint{.where = "--vocab-size",
                  .found = tokenizer.empty() ? "nothing" : fmt::format("nothing, and {} is no known tokenizer", tokenizer),
                  .expected = "a number, or --tokenizer with one of " + fmt::format("{}", fmt::join(data::tokenizer_preset_names(), ", ")),
                  .hint = "a headerless file cannot say what its tokens are"});
  }
  settings.type = manifest ? manifest->type : data::token_type_for(vocabulary.size);
  if (!dtype.empty()) {
    const data::TokenType given = data::parse_token_type(dtype, "--dtype");
    if (manifest && given != settings.type)
      throw UsageError(Complaint{
          .where = "--dtype", .found = dtype, .expected = fmt::format("{}, as in manifest.json", data::name_of(settings.type)), .hint = ""});
    settings.type = given;
  }
  return settings;
}

}  // namespace dz::cli
