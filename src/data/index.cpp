#include "data/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/fingerprint.h"
#include "data/index_format.h"
#include "data/token_file.h"

namespace dz::data {
namespace {

using Json = nlohmann::ordered_json;

std::vector<FingerprintFile> sizes_in_tokens(const TokenIndex& index) {
  std::vector<FingerprintFile> files;
  for (const IndexedFile& file : index.files) files.push_back({.path = file.path, .size = file.tokens});
  return files;
}

std::string dump(const Json& json, bool ascii) {
  try {
    return json.dump(2, ' ', ascii);
  } catch (const Json::exception&) {
    throw DataError("an index cannot hold a path, label or tokenizer name that is not UTF-8");
  }
}

Json optional_text(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

}  // namespace

int64_t TokenIndex::total_instances() const { return files.empty() ? 0 : files.back().offset + files.back().instances; }

int64_t TokenIndex::total_tokens() const {
  int64_t sum = 0;
  for (const IndexedFile& file : files) sum += file.tokens;
  return sum;
}

IndexPlace find_instance(const TokenIndex& index, int64_t instance) {
  DZ_CHECK(instance >= 0 && instance < index.total_instances(), "instance", instance, "instances", index.total_instances());
  // The last file that starts at or before it, so that files without instances are passed over.
  const auto after =
      std::upper_bound(index.files.begin(), index.files.end(), instance, [](int64_t id, const IndexedFile& file) { return id < file.offset; });
  const IndexedFile& file = *(after - 1);
  return {.file = after - 1 - index.files.begin(), .token = (instance - file.offset) * index.sequence_length};
}

TokenIndex make_index(const TokenStore& store, int64_t sequence_length, const std::string& tokenizer,
                      const std::vector<std::optional<std::string>>& hashes) {
  if (sequence_length <= 0)
    throw ConfigError(Complaint{.where = "sequence length", .found = std::to_string(sequence_length), .expected = "a positive number", .hint = ""});
  TokenIndex index{.sequence_length = sequence_length, .type = store.type(), .tokenizer = tokenizer, .vocabulary = store.vocabulary(), .files = {}};
  int64_t offset = 0;
  for (int64_t i = 0; i < store.size(); ++i) {
    const TokenEntry& entry = store.entry(i);
    const int64_t instances = entry.tokens / sequence_length;
    index.files.push_back({.path = entry.name,
                           .label = entry.label,
                           .tokens = entry.tokens,
                           .instances = instances,
                           .offset = offset,
                           .bytes = entry.bytes,
                           .sha256 = hashes.empty() ? std::nullopt : hashes[static_cast<size_t>(i)]});
    offset += instances;
  }
  return index;
}

std::string index_fingerprint(const TokenIndex& index) {
  Sha256 hash;
  hash.update(fmt::format("{}\nlength {}\ndtype {}\nvocab {}\neos {}\nbos {}\n", kIndexFormat, index.sequence_length, name_of(index.type),
                          index.vocabulary.size, index.vocabulary.eos_id, index.vocabulary.bos_id));
  for (const IndexedFile& file : index.files) {
    if (file.sha256) {
      hash.update(fmt::format("{} sha256 {}\n", file.tokens, *file.sha256));
    } else {
      hash.update(fmt::format("{} bytes {} {}\n", file.tokens, file.bytes, file.path.substr(file.path.rfind('/') + 1)));
    }
  }
  return hash.hex();
}

std::string index_json(const TokenIndex& index) {
  Json json = {{"format", kIndexFormat},
               {"sequence_length", index.sequence_length},
               {"dtype", name_of(index.type)},
               {"tokenizer", index.tokenizer},
               {"vocab_size", index.vocabulary.size},
               {"eos_id", index.vocabulary.eos_id},
               {"bos_id", index.vocabulary.bos_id},
               {"total_instances", index.total_instances()},
               {"total_tokens", index.total_tokens()},
               {"fingerprint", index_fingerprint(index)},
               {"files", Json::array()}};
  for (const IndexedFile& file : index.files) {
    json["files"].push_back({{"path", file.path},
                             {"label", file.label},
                             {"tokens", file.tokens},
                             {"instances", file.instances},
                             {"offset", file.offset},
                             {"bytes", file.bytes},
                             {"sha256", optional_text(file.sha256)}});
  }
  return dump(json, false) + "\n";
}

std::string maxtext_index_json(const TokenIndex& index) {
  Json json = {{"format_version", "1"},
               {"sequence_length", index.sequence_length},
               {"dtype", name_of(index.type)},
               {"tokenizer", index.tokenizer},
               {"total_instances", index.total_instances()},
               {"total_tokens", index.total_tokens()},
               {"fingerprint", maxtext_fingerprint(index.sequence_length, name_of(index.type), index.tokenizer, sizes_in_tokens(index))},
               {"files", Json::array()}};
  for (const IndexedFile& file : index.files) {
    json["files"].push_back(
        {{"path", file.path}, {"label", file.label}, {"n_tokens", file.tokens}, {"n_instances", file.instances}, {"instance_offset", file.offset}});
  }
  return dump(json, true);
}

void check_index_files(const TokenIndex& index, const std::string& base) {
  for (const IndexedFile& entry : index.files) {
    const File file = File::open_read(fs::path(base) / entry.path);
    const auto refuse = [&](int64_t found, int64_t expected, const char* unit) {
      throw DataError(Complaint{.where = file.path().string(),
                                .found = fmt::format("{} {}", found, unit),
                                .expected = fmt::format("{}, as in the index", expected),
                                .hint = found < expected ? "the file was shortened" : "the file was changed: make the index again"});
    };
    if (entry.bytes >= 0 && file.size() != entry.bytes) refuse(file.size(), entry.bytes, "bytes");
    const TokenLayout layout = token_layout(file, index.type);
    if (layout.tokens != entry.tokens) refuse(layout.tokens, entry.tokens, "tokens");
  }
}

}  // namespace dz::data
