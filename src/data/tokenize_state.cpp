#include "data/tokenize_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

Json counts_json(const TokenizeCounts& counts) {
  const text::ExtractCounts& text = counts.text;
  return {{"name", counts.name},
          {"files", text.files},
          {"skipped_files", text.skipped_files},
          {"documents", text.documents},
          {"empty_documents", text.empty_documents},
          {"bytes", text.bytes},
          {"replaced", text.replaced},
          {"bad_lines", text.bad_lines},
          {"first_bad", text.first_bad},
          {"special", counts.documents_with_special_text},
          {"eos", counts.documents_with_eos_text}};
}

TokenizeCounts parse_counts(const Json& json) {
  TokenizeCounts counts;
  counts.name = json.at("name");
  counts.text = {.files = json.at("files"),
                 .skipped_files = json.at("skipped_files"),
                 .documents = json.at("documents"),
                 .empty_documents = json.at("empty_documents"),
                 .bytes = json.at("bytes"),
                 .replaced = json.at("replaced"),
                 .bad_lines = json.at("bad_lines"),
                 .first_bad = json.at("first_bad")};
  counts.documents_with_special_text = json.at("special");
  counts.documents_with_eos_text = json.at("eos");
  return counts;
}

Json held_out_json(const HeldOutChooser::State& state) {
  Json copies = Json::array();
  for (const DocumentPlace& copy : state.copies) copies.push_back({copy.id, copy.file, copy.line});
  Json json = {{"waits", state.waits}, {"seen", state.seen}, {"hash", state.hash}, {"ids", state.ids}, {"copies", copies}};
  if (state.settled) json["settled"] = {state.settled->first, state.settled->second == Split::kHeldOut};
  return json;
}

HeldOutChooser::State parse_held_out(const Json& json) {
  HeldOutChooser::State state;
  state.waits = json.at("waits");
  state.seen = json.at("seen");
  state.hash = json.at("hash");
  state.ids = json.at("ids").get<std::vector<int32_t>>();
  for (const Json& copy : json.at("copies")) state.copies.push_back({.id = copy.at(0), .file = copy.at(1), .line = copy.at(2)});
  if (json.contains("settled"))
    state.settled = {json["settled"].at(0).get<uint64_t>(), json["settled"].at(1).get<bool>() ? Split::kHeldOut : Split::kTrain};
  return state;
}

}  // namespace

std::string to_json(const TokenizeState& state) {
  Json counts = Json::array();
  for (const TokenizeCounts& entry : state.counts) counts.push_back(counts_json(entry));
  const Json json = {{"counts", counts},
                     {"done", state.done},
                     {"position", {state.position.file, state.position.line, state.position.offset}},
                     {"held_out", held_out_json(state.held_out)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TokenizeState parse_tokenize_state(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TokenizeState state;
    for (const Json& entry : json.at("counts")) state.counts.push_back(parse_counts(entry));
    state.done = json.at("done");
    const Json& position = json.at("position");
    state.position = {.file = position.at(0), .line = position.at(1), .offset = position.at(2)};
    state.held_out = parse_held_out(json.at("held_out"));
    return state;
  } catch (const Json::exception&) {
    throw DataError("state of an interrupted tokenize: damaged; remove .partial in the directory of the shards and start again");
  }
}

}  // namespace dz::data
