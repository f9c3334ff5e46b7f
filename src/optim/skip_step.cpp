#include "optim/skip_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

namespace dz::optim {
namespace {

using Json = nlohmann::json;

struct Statistics {
  float mean = 0, deviation = 0;
};

// Sums in double, oldest first; n - 1 in the variance, so the deviation of a single value is NaN, as in the reference.
Statistics statistics_of(const std::vector<float>& window) {
  const auto count = static_cast<double>(window.size());
  double sum = 0, squares = 0;
  for (const float x : window) sum += static_cast<double>(x);
  const double mean = sum / count;
  for (const float x : window) squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
  return {.mean = static_cast<float>(mean), .deviation = static_cast<float>(__builtin_sqrt(squares / (count - 1)))};
}

// What is wrong with `value` after `window`; empty when nothing is. Written so that a NaN deviation counts as wrong.
std::string complaint(const char* what, float value, const std::vector<float>& window, float sigma) {
  const auto [mean, deviation] = statistics_of(window);
  if (value - mean <= sigma * deviation) return {};
  if (!(deviation > 0)) return fmt::format("{} {:.6g} is above the last {}, which do not vary", what, value, window.size());
  return fmt::format("{} is {:.1f} sigma above the last {}", what, (value - mean) / deviation, window.size());
}

void remember(std::vector<float>& window, float value, int64_t most) {
  window.push_back(value);
  if (static_cast<int64_t>(window.size()) > most) window.erase(window.begin());
}

Json hex_list(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(fmt::format("{:a}", value));
  return list;
}

// A finite float in C's hex form, the whole text; nothing else.
std::optional<float> parse_hex(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (!text.starts_with("0x")) return {};
  text.remove_prefix(2);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return negative ? -value : value;
}

[[noreturn]] void refuse(const std::string& where, const std::string& found, const std::string& expected) {
  throw CheckpointError(Complaint{.where = where, .found = found.substr(0, 80), .expected = expected, .hint = ""});
}

std::vector<float> read_window(const Json& json, const char* key, int64_t most, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array())
    refuse(where + ": " + key, found == json.end() ? "nothing" : found->type_name(), "a list of hex floats");
  std::vector<float> values;
  for (const Json& item : *found) {
    const std::optional<float> value = item.is_string() ? parse_hex(item.get_ref<const std::string&>()) : std::nullopt;
    if (!value) refuse(where + ": " + key, item.dump(), "a finite hex float such as \"0x1.8p+1\"");
    values.push_back(*value);
  }
  if (static_cast<int64_t>(values.size()) > most) values.erase(values.begin(), values.end() - most);
  return values;
}

int64_t read_count(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer() || found->get<int64_t>() < 0) {
    refuse(where + ": " + key, found == json.end() ? "nothing" : found->dump(), "a count");
  }
  return found->get<int64_t>();
}

}  // namespace

void check(const SkipStepSettings& settings, const std::string& where) {
  if (settings.window < 2)
    throw ConfigError(
        Complaint{.where = where + ".window", .found = std::to_string(settings.window), .expected = "at least 2 steps", .hint = "OLMo 3 uses 128"});
  if (!(settings.sigma > 0) || !std::isfinite(settings.sigma)) {
    throw ConfigError(
        Complaint{.where = where + ".sigma", .found = fmt::format("{}", settings.sigma), .expected = "a positive number", .hint = "OLMo 3 uses 6"});
  }
}

SkipStep::SkipStep(const SkipStepSettings& settings) : settings_(settings) {}

SkipVerdict SkipStep::judge(float loss, float grad_norm) {
  SkipVerdict verdict;
  if (!std::isfinite(loss)) verdict.reason = fmt::format("loss is {}", loss);
  if (!std::isfinite(grad_norm)) verdict.reason += fmt::format("{}gradient norm is {}", verdict.reason.empty() ? "" : ", ", grad_norm);
  if (verdict.reason.empty()) {
    const auto known = static_cast<int64_t>(losses_.size()) + 1;
    if (settings_.enabled && known >= std::max(int64_t{2}, settings_.window / 2)) {
      verdict.reason = complaint("loss", loss, losses_, settings_.sigma);
      if (verdict.reason.empty() && settings_.use_grad_norm) verdict.reason = complaint("gradient norm", grad_norm, norms_, settings_.sigma);
    }
    remember(losses_, loss, settings_.window);
    remember(norms_, grad_norm, settings_.window);
  }
  verdict.skip = !verdict.reason.empty();
  consecutive_ = verdict.skip ? consecutive_ + 1 : 0;
  if (verdict.skip) ++total_;
  return verdict;
}

SkipVerdict SkipStep::pass_over(std::string reason) {
  ++consecutive_;
  ++total_;
  return {.skip = true, .reason = std::move(reason)};
}

std::string SkipStep::to_json() const {
  return Json{{"losses", hex_list(losses_)}, {"grad_norms", hex_list(norms_)}, {"consecutive_skips", consecutive_}, {"total_skips", total_}}.dump();
}

void SkipStep::restore(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) refuse(where, json.is_discarded() ? "text that is not JSON" : json.type_name(), "the state of skip_step");
  std::vector<float> losses = read_window(json, "losses", settings_.window, where);
  std::vector<float> norms = read_window(json, "grad_norms", settings_.window, where);
  if (losses.size() != norms.size()) refuse(where, fmt::format("{} losses and {} norms", losses.size(), norms.size()), "as many of each");
  const int64_t consecutive = read_count(json, "consecutive_skips", where), total = read_count(json, "total_skips", where);
  losses_ = std::move(losses);
  norms_ = std::move(norms);
  consecutive_ = consecutive;
  total_ = total;
}

}  // namespace dz::optim
