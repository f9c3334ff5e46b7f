// How a verification reads, for people and for programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval/verify.h"

namespace dz::eval {
namespace {

using Json = nlohmann::ordered_json;

std::string with_commas(int64_t value) {
  std::string text = std::to_string(value);
  for (auto place = static_cast<std::ptrdiff_t>(text.size()) - 3; place > 0; place -= 3) text.insert(static_cast<size_t>(place), ",");
  return text;
}

// "1-20, 31-40"
std::string ranges(const std::vector<int64_t>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size();) {
    size_t end = i;
    while (end + 1 < steps.size() && steps[end + 1] == steps[end] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(steps[i]) + (end > i ? "-" + std::to_string(steps[end]) : "");
    i = end + 1;
  }
  return text;
}

std::string hex(float value) { return fmt::format("{:a}", value); }

std::string tensor_text(const TensorDifference& tensor) {
  std::string text = "  first tensor: " + tensor.name + ", ";
  text += tensor.what.empty() ? fmt::format("element {}: {} against {}", with_commas(tensor.element), hex(tensor.a), hex(tensor.b)) : tensor.what;
  return text + fmt::format("   (checkpoints of step {})\n", tensor.step);
}

std::string verdict(const Verification& v) { return v.nothing_in_common() ? "nothing in common" : v.first ? "different" : "same"; }

std::string settings_text(const Verification& v) {
  if (v.settings.empty()) return "  recipe and topology equal -> this should not happen: please report it\n";
  const char* conclusion =
      v.same_recipe ? "  -> recipe equal: none of this should move bits, please report it\n" : "  -> the recipes differ, so the bits may\n";
  return fmt::format("  {}\n{}", fmt::join(v.settings, "\n  "), conclusion);
}

std::string common_text(const Verification& v) {
  std::string text =
      fmt::format("{} common step{}{}", v.steps.size(), v.steps.size() == 1 ? "" : "s", v.steps.empty() ? "" : " (" + ranges(v.steps) + ")");
  text += v.digest_steps.empty() ? "; no state digest in common" : "; state digests at " + ranges(v.digest_steps);
  return text + (v.checkpoints.empty() ? "\n" : "; checkpoints at " + ranges(v.checkpoints) + "\n");
}

}  // namespace

std::string to_text(const Verification& v) {
  std::string text;
  for (const std::string& note : v.notes) text += "note: " + note + "\n";
  if (v.nothing_in_common()) return text + "nothing in common: no step with a certificate or a checkpoint in both\n";
  text += common_text(v);
  if (v.first) {
    text += fmt::format("DIFFERENT from step {}: {}\n", v.first->step, v.first->what);
    if (v.tensor) text += tensor_text(*v.tensor);
    if (v.last_equal_digest) text += fmt::format("  state digests last equal at step {}\n", *v.last_equal_digest);
    return text + settings_text(v);
  }
  if (!v.settings.empty()) text += fmt::format("{}\n", fmt::join(v.settings, "   "));
  if (!v.digest) return text + "batch ids, loss and norm equal\nDELTA 0   (of what the metrics lines hold)\n";
  text += fmt::format("parameters {}  moments {}  trainer {}\n", v.digest->parameters, v.digest->moments, v.digest->trainer);
  return text + "DELTA 0\n";
}

std::string to_json(const Verification& v) {
  Json json;
  json["verdict"] = verdict(v);
  json["steps"] = {{"common", v.steps.size()}, {"ranges", ranges(v.steps)}};
  json["digest_steps"] = v.digest_steps;
  json["checkpoints"] = v.checkpoints;
  json["digest"] =
      v.digest ? Json{{"parameters", v.digest->parameters}, {"moments", v.digest->moments}, {"trainer", v.digest->trainer}} : Json(nullptr);
  json["first_difference"] = v.first ? Json{{"step", v.first->step}, {"what", v.first->what}} : Json(nullptr);
  if (v.tensor) {
    json["first_tensor"] = {{"step", v.tensor->step}, {"name", v.tensor->name}};
    if (v.tensor->what.empty()) {
      json["first_tensor"].update({{"element", v.tensor->element}, {"a", hex(v.tensor->a)}, {"b", hex(v.tensor->b)}});
    } else {
      json["first_tensor"]["what"] = v.tensor->what;
    }
  }
  if (v.last_equal_digest) json["last_equal_digest"] = *v.last_equal_digest;
  json["same_recipe"] = v.same_recipe;
  json["settings"] = v.settings;
  json["notes"] = v.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dz::eval
