#include "text/pipeline.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dz::text {
namespace {

using nlohmann::json;

const json& child(const json& parent, const char* key) {
  static const json kNull;
  if (!parent.is_object()) return kNull;
  const auto it = parent.find(key);
  return it == parent.end() ? kNull : *it;
}

std::string type_of(const json& node) {
  const json& type = child(node, "type");
  return type.is_string() ? type.get<std::string>() : std::string();
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t kLongest = 120;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

class PipelineReader {
 public:
  explicit PipelineReader(const std::string& where) : where_(where) {}

  Pipeline read(const json& root) {
    read_normalizer(child(root, "normalizer"), "normalizer");
    const json& pre_tokenizer = child(root, "pre_tokenizer");
    read_pre_tokenizer(pre_tokenizer, "pre_tokenizer");
    if (!byte_level_) fail("pre_tokenizer", shown(pre_tokenizer), "ByteLevel as its last step; vocabularies of other kinds are not supported");
    read_post_processor(child(root, "post_processor"), "post_processor");
    read_decoder(child(root, "decoder"));
    return std::move(pipeline_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = where_ + ": " + key, .found = found, .expected = expected, .hint = ""});
  }
  bool flag(const json& node, const std::string& key, const char* name, bool missing) const {
    const json& value = child(node, name);
    if (value.is_null()) return missing;
    if (!value.is_boolean()) fail(key + "." + name, shown(value), "true or false");
    return value.get<bool>();
  }
  // Calls `each` for the items of a Sequence, with their keys.
  template <class Each>
  void sequence(const json& node, const std::string& key, const char* items, Each&& each) {
    const json& list = child(node, items);
    if (!list.is_array()) fail(key + "." + items, shown(list), "a list");
    for (size_t i = 0; i < list.size(); ++i) each(list[i], key + "." + items + "[" + std::to_string(i) + "]");
  }

  void read_normalizer(const json& node, const std::string& key);
  void read_pre_tokenizer(const json& node, const std::string& key);
  SplitStep read_split(const json& node, const std::string& key) const;
  SplitBehavior read_behavior(const json& node, const std::string& key) const;
  void read_byte_level(const json& node, const std::string& key);
  void read_post_processor(const json& node, const std::string& key);
  void read_template(const json& node, const std::string& key);
  std::vector<int32_t> template_ids(const json& node, const std::string& key, const json& name) const;
  void read_decoder(const json& node);

  const std::string& where_;
  Pipeline pipeline_;
  bool byte_level_ = false;
  bool template_seen_ = false;
};

void PipelineReader::read_normalizer(const json& node, const std::string& key) {
  if (node.is_null()) return;
  const std::string type = type_of(node);
  if (type == "Sequence")
    sequence(node, key, "normalizers", [&](const json& item, const std::string& at) { read_normalizer(item, at); });
  else if (type == "NFC")
    pipeline_.nfc = true;
  else
    fail(key, shown(node), "null, NFC or a Sequence of it; others are not supported");
}

void PipelineReader::read_pre_tokenizer(const json& node, const std::string& key) {
  if (byte_level_) fail(key, shown(node), "nothing behind ByteLevel");
  const std::string type = type_of(node);
  if (type == "Sequence") {
    sequence(node, key, "pretokenizers", [&](const json& item, const std::string& at) { read_pre_tokenizer(item, at); });
  } else if (type == "Split") {
    pipeline_.pre_tokenizer.steps.push_back(read_split(node, key));
  } else if (type == "Digits") {
    SplitStep step{.digits = true};
    if (!flag(node, key, "individual_digits", false)) step.behavior = SplitBehavior::kContiguous;
    pipeline_.pre_tokenizer.steps.push_back(std::move(step));
  } else if (type == "ByteLevel") {
    read_byte_level(node, key);
  } else {
    fail(key, shown(node), "Split, Digits, ByteLevel or a Sequence of them; others are not supported");
  }
}

SplitBehavior PipelineReader::read_behavior(const json& node, const std::string& key) const {
  constexpr std::pair<const char*, SplitBehavior> kNames[] = {{"Removed", SplitBehavior::kRemoved},
                                                              {"Isolated", SplitBehavior::kIsolated},
                                                              {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
                                                              {"MergedWithNext", SplitBehavior::kMergedWithNext},
                                                              {"Contiguous", SplitBehavior::kContiguous}};
  const json& value = child(node, "behavior");
  for (const auto& [name, behavior] : kNames)
    if (value == name) return behavior;
  fail(key + ".behavior", shown(value), "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

SplitStep PipelineReader::read_split(const json& node, const std::string& key) const {
  SplitStep step{.behavior = read_behavior(node, key), .invert = flag(node, key, "invert", false)};
  const json& pattern = child(node, "pattern");
  const json& regex = child(pattern, "Regex");
  const json& literal = child(pattern, "String");
  if (regex.is_string() == literal.is_string()) fail(key + ".pattern", shown(pattern), "{\"Regex\": \"..\"} or {\"String\": \"..\"}");
  if (literal.is_string()) {
    step.literal = literal.get<std::string>();
    if (step.literal.empty()) fail(key + ".pattern", shown(pattern), "a String that is not empty");
    return step;
  }
  const auto& text = regex.get_ref<const std::string&>();
  step.pattern = pattern_of(text);
  if (!step.pattern) step.regex = std::make_shared<const Regex>(text, where_ + ": " + key + ".pattern");
  return step;
}

void PipelineReader::read_byte_level(const json& node, const std::string& key) {
  byte_level_ = true;
  pipeline_.pre_tokenizer.prefix_space = flag(node, key, "add_prefix_space", true);
  if (flag(node, key, "use_regex", true)) pipeline_.pre_tokenizer.last = Pattern::kGpt2;
}

void PipelineReader::read_post_processor(const json& node, const std::string& key) {
  const std::string type = type_of(node);
  if (node.is_null() || type == "ByteLevel") return;  // which only trims white space off offsets; ours keep it
  if (type == "Sequence")
    sequence(node, key, "processors", [&](const json& item, const std::string& at) { read_post_processor(item, at); });
  else if (type == "TemplateProcessing")
    read_template(node, key);
  else
    fail(key, shown(node), "null, ByteLevel, TemplateProcessing or a Sequence of them; others are not supported");
}

void PipelineReader::read_template(const json& node, const std::string& key) {
  if (template_seen_) fail(key, shown(node), "one TemplateProcessing");
  template_seen_ = true;
  bool text_seen = false;
  sequence(node, key, "single", [&](const json& item, const std::string& at) {
    const json& sequence_item = child(item, "Sequence");
    if (sequence_item.is_object()) {
      if (text_seen || child(sequence_item, "id") != "A") fail(at, shown(item), "the text, as Sequence A, once");
      text_seen = true;
      return;
    }
    const json& name = child(child(item, "SpecialToken"), "id");
    const std::vector<int32_t> ids = template_ids(node, key, name);
    std::vector<int32_t>& side = text_seen ? pipeline_.behind : pipeline_.in_front;
    side.insert(side.end(), ids.begin(), ids.end());
  });
  if (!text_seen) fail(key + ".single", shown(child(node, "single")), "the text, as Sequence A, once");
}

std::vector<int32_t> PipelineReader::template_ids(const json& node, const std::string& key, const json& name) const {
  if (!name.is_string()) fail(key + ".single", shown(child(node, "single")), "Sequence and SpecialToken items");
  const auto& text = name.get_ref<const std::string&>();
  const json& list = child(child(child(node, "special_tokens"), text.c_str()), "ids");
  if (!list.is_array()) fail(key + ".special_tokens", "no ids of " + shown(name), "them");
  std::vector<int32_t> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) fail(key + ".special_tokens", shown(id), "ids from 0 below 2^31");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// ByteLevel joins all tokens, so that Fuse behind it has nothing left to do.
void PipelineReader::read_decoder(const json& node) {
  if (type_of(node) != "Sequence") {
    if (type_of(node) != "ByteLevel") fail("decoder", shown(node), "ByteLevel, or a Sequence of ByteLevel and Fuse");
    return;
  }
  bool first = true;
  sequence(node, "decoder", "decoders", [&](const json& item, const std::string& at) {
    if (type_of(item) != (first ? "ByteLevel" : "Fuse")) fail(at, shown(item), first ? "ByteLevel" : "Fuse");
    first = false;
  });
  if (first) fail("decoder", shown(node), "ByteLevel, or a Sequence of ByteLevel and Fuse");
}

}  // namespace

Pipeline parse_pipeline(std::string_view text, const std::string& where) { return PipelineReader(where).read(json::parse(text)); }

}  // namespace dz::text
