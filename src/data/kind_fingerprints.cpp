#include "data/kind_fingerprints.h"

#include <fmt/format.h>

#include "data/fingerprint.h"

namespace dz::data {
namespace {

std::string fingerprint(std::string_view class_name, const FingerprintFields& fields, const TokenStore& store) {
  return olmo_core_fingerprint(class_name, fields, fingerprint_files(store));
}

// A list of strings as Python prints it; names with characters that it would escape are not told apart by OLMo-core either.
std::string python_list(const std::vector<std::string>& names) {
  if (names.empty()) return "None";
  std::string list = "[";
  for (const std::string& name : names) {
    const char quote = name.find('\'') != std::string::npos && name.find('"') == std::string::npos ? '"' : '\'';
    list += list.size() > 1 ? ", " : "";
    list += quote;
    for (const char c : name) {
      if (c == '\\' || c == quote) list += '\\';
      list += c;
    }
    list += quote;
  }
  return list + "]";
}

FingerprintFields fields_of(const TokenStore& store) { return common_fields(store.vocabulary(), store.type()); }

std::pair<std::string, std::string> bos_field(const TokenStore& store) {
  const int64_t bos = store.vocabulary().bos_id;
  return {"bos_token_id", python_value(bos < 0 ? std::nullopt : std::optional(bos))};
}

}  // namespace

std::string olmo_core_fingerprint(const TokenStore& store, int64_t target_length) {
  return fingerprint("NumpyFSLDataset", fixed_fields(store.vocabulary(), store.type(), target_length), store);
}

std::string olmo_core_fingerprint(const TokenStore& store, const PaddedSettings& settings) {
  FingerprintFields fields = fixed_fields(store.vocabulary(), store.type(), 0);
  fields.emplace_back("sequence_length", std::to_string(settings.sequence_length));
  return fingerprint("NumpyPaddedFSLDataset", fields, store);
}

std::string olmo_core_fingerprint(const TokenStore& store, const PackedSettings& settings) {
  FingerprintFields fields = fields_of(store);
  fields.emplace_back("long_doc_strategy", name_of(settings.long_documents));
  fields.push_back(bos_field(store));
  fields.emplace_back("sequence_length", std::to_string(settings.sequence_length));
  if (settings.source_group_size > 1) fields.emplace_back("source_group_size", std::to_string(settings.source_group_size));
  return fingerprint("NumpyPackedFSLDataset", fields, store);
}

// The number of chunks takes no part there.
std::string olmo_core_fingerprint(const TokenStore& store, const InterleavedSettings& settings) {
  FingerprintFields fields = fields_of(store);
  fields.emplace_back("_docs_per_instance", std::to_string(settings.docs_per_instance));
  fields.emplace_back("_seed", settings.seed.decimal());
  fields.emplace_back("_interleaving_exempt_paths", python_list(settings.exempt));
  fields.emplace_back("max_target_sequence_length", "None");
  fields.push_back(bos_field(store));
  fields.emplace_back("sequence_length", std::to_string(settings.sequence_length));
  return fingerprint("NumpyInterleavedFSLDataset", fields, store);
}

std::string olmo_core_fingerprint(const TokenStore& store, const VslSettings& settings, const VslCurriculum& curriculum) {
  FingerprintFields fields = fields_of(store);
  fields.emplace_back("min_sequence_length", std::to_string(settings.min_length));
  fields.emplace_back("max_sequence_length", std::to_string(settings.max_length));
  fields.emplace_back("curriculum", python_repr(curriculum));
  return fingerprint("NumpyVSLDataset", fields, store);
}

}  // namespace dz::data
