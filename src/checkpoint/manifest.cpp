#include "checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dz::checkpoint {
namespace {

// Keys stay in the order in which they are written, so that a manifest that was read can be written again byte for byte.
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "deltazero checkpoint 1";

std::optional<Digest128> from_hex(const std::string& hex) {
  Digest128 digest;
  if (hex.size() != 32) return std::nullopt;
  const char* text = hex.data();
  for (uint64_t* word : {&digest.high, &digest.low}) {
    const auto [end, error] = std::from_chars(text, text + 16, *word, 16);
    if (error != std::errc() || end != text + 16) return std::nullopt;
    text += 16;
  }
  return digest;
}

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw CheckpointError(
      Complaint{.where = path.string(), .found = what, .expected = "", .hint = "the file is damaged or not a manifest of deltazero"});
}

Json body_of(const Checkpoint& checkpoint) {
  Json json;
  json["format"] = kFormat;
  json["step"] = checkpoint.step;
  json["digest"] = {{"parameters", checkpoint.parameters.hex()}, {"moments", checkpoint.moments.hex()}, {"trainer", checkpoint.trainer.hex()}};
  json["chunk_bytes"] = kManifestChunk;
  json["files"] = Json::array();
  for (const ManifestFile& file : checkpoint.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}, {"xxh3_128_of_chunks", file.chunks}});
  return json;
}

Digest128 digest_field(const fs::path& path, const Json& json, const char* key) {
  const auto digest = from_hex(json.at(key).get<std::string>());
  if (!digest) damaged(path, std::string("the digest of ") + key + " is not 32 hexadecimal digits");
  return *digest;
}

ManifestFile parse_file(const fs::path& path, const Json& json) {
  ManifestFile file{json.at("name").get<std::string>(), json.at("bytes").get<int64_t>(), json.at("sha256").get<std::string>(),
                    json.at("xxh3_128_of_chunks").get<std::vector<std::string>>()};
  if (!is_plain_name(file.name) || file.name == kManifestName) damaged(path, "the file name \"" + file.name + "\"");
  if (file.bytes < 0 || static_cast<int64_t>(file.chunks.size()) != file.bytes / kManifestChunk + (file.bytes % kManifestChunk != 0))
    damaged(path, file.name + ": " + std::to_string(file.bytes) + " bytes in " + std::to_string(file.chunks.size()) + " chunks");
  return file;
}

TensorsDigest parse_tensors(const fs::path& path, const Json& json) {
  TensorsDigest digest;
  for (const auto& [name, hex] : json.items()) {
    const auto value = from_hex(hex.get<std::string>());
    if (!value) damaged(path, "the digest of " + name + " is not 32 hexadecimal digits");
    digest.tensors.push_back({name, *value});
  }
  std::sort(digest.tensors.begin(), digest.tensors.end(), [](const NamedDigest& a, const NamedDigest& b) { return a.name < b.name; });
  for (size_t i = 1; i < digest.tensors.size(); ++i)
    if (digest.tensors[i - 1].name == digest.tensors[i].name) damaged(path, "\"" + digest.tensors[i].name + "\" twice");
  digest.total = combined_digest(digest.tensors);
  return digest;
}

}  // namespace

std::string manifest_text(const Checkpoint& checkpoint) {
  Json json = body_of(checkpoint);
  json["sha256"] = sha256_hex(body_of(checkpoint).dump(1));
  return json.dump(1) + "\n";
}

Checkpoint parse_manifest(const fs::path& directory, const std::string& text) {
  const fs::path path = directory / kManifestName;
  Checkpoint checkpoint;
  checkpoint.path = directory;
  try {
    const Json json = Json::parse(text);
    if (json.at("format").get<std::string>() != kFormat || json.at("chunk_bytes").get<int64_t>() != kManifestChunk)
      damaged(path, "another format than \"" + std::string(kFormat) + "\"");
    checkpoint.step = json.at("step").get<int64_t>();
    checkpoint.parameters = digest_field(path, json.at("digest"), "parameters");
    checkpoint.moments = digest_field(path, json.at("digest"), "moments");
    checkpoint.trainer = digest_field(path, json.at("digest"), "trainer");
    for (const Json& file : json.at("files")) checkpoint.files.push_back(parse_file(path, file));
  } catch (const Json::exception&) {
    damaged(path, "not readable as the JSON that was saved: cut off or changed");
  }
  // Written again from what was understood, hash included: no changed byte, white space or unknown field can hide.
  if (checkpoint.step < 0 || manifest_text(checkpoint) != text) damaged(path, "contents that do not match its own hash");
  return checkpoint;
}

std::string digests_text(const StateDigests& digests) {
  Json json;
  const auto add = [&](const char* key, const TensorsDigest& digest) {
    json[key] = Json::object();
    for (const NamedDigest& tensor : digest.tensors) json[key][tensor.name] = tensor.digest.hex();
  };
  add("parameters", digests.parameters);
  add("moments", digests.moments);
  json["trainer"] = digests.trainer.hex();
  return json.dump(1) + "\n";
}

StateDigests parse_digests(const fs::path& path, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    return {parse_tensors(path, json.at("parameters")), parse_tensors(path, json.at("moments")), digest_field(path, json, "trainer")};
  } catch (const Json::exception&) {
    damaged(path, "not readable as the JSON that was saved: cut off or changed");
  }
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::string step_name(int64_t step) { return "step-" + std::to_string(step); }

std::optional<int64_t> step_of(std::string_view directory_name) {
  constexpr std::string_view kPrefix = "step-";
  if (!directory_name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  std::from_chars(directory_name.data() + kPrefix.size(), directory_name.data() + directory_name.size(), step);
  if (step < 0 || step_name(step) != directory_name) return std::nullopt;
  return step;
}

const ManifestFile& manifest_file(const Checkpoint& checkpoint, std::string_view name) {
  for (const ManifestFile& file : checkpoint.files)
    if (file.name == name) return file;
  throw CheckpointError(
      Complaint{.where = checkpoint.path.string(), .found = "no " + std::string(name), .expected = "it in this checkpoint", .hint = ""});
}

}  // namespace dz::checkpoint
