#include "train/gradient_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "base/error.h"

namespace dz::train {
namespace {

constexpr const char* kForm = "grad:TENSOR[i,j]=VALUE@STEP or @FIRST-LAST, with nan, inf, -inf or xFACTOR as the value; grad:*=... for all";

[[noreturn]] void refuse(const std::string& found, const std::string& expected = kForm) {
  throw UsageError(Complaint{.where = "DZ_FAULT", .found = found.substr(0, 120), .expected = expected, .hint = "it is a switch for tests; unset it"});
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<int64_t> read_index(std::string_view list, const std::string& text) {
  std::vector<int64_t> index;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (!read_number(list.substr(begin, end - begin), index.emplace_back())) refuse(text);
    begin = end + 1;
  }
  return index;
}

void read_value(std::string_view value, GradientFault& fault) {
  if (value == "nan") {
    fault.value = std::numeric_limits<float>::quiet_NaN();
  } else if (value == "inf" || value == "-inf") {
    fault.value = value.front() == '-' ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  } else {
    fault.multiply = true;
    if (!value.starts_with('x') || !read_number(value.substr(1), fault.value) || !std::isfinite(fault.value)) refuse(fault.text);
  }
}

void read_steps(std::string_view steps, GradientFault& fault) {
  const size_t dash = steps.find('-');
  const bool range = dash != std::string_view::npos;
  if (!read_number(steps.substr(0, dash), fault.first) || !read_number(range ? steps.substr(dash + 1) : steps, fault.last)) refuse(fault.text);
  if (fault.first < 1 || fault.last < fault.first) refuse(fault.text, "steps of at least 1, in order");
}

void check_target(const GradientFault& fault, const model::ModelConfig& model) {
  if (fault.tensor == "*" && fault.index.empty()) return;
  for (const model::ParameterSpec& spec : model::parameter_specs(model)) {
    if (spec.name != fault.tensor) continue;
    bool inside = fault.index.empty() || fault.index.size() == spec.shape.size();
    for (size_t i = 0; inside && i < fault.index.size(); ++i) inside = fault.index[i] >= 0 && fault.index[i] < spec.shape[i];
    if (!inside) refuse(fault.text, fmt::format("an element of {}, whose shape is {}", spec.name, shape_text(spec.shape)));
    return;
  }
  refuse(fault.text, "a tensor of the model, such as model.norm.weight, or * without an index");
}

}  // namespace

void GradientFault::apply(model::Parameters& gradient) const {
  for (size_t i = 0; i < gradient.size(); ++i) {
    const model::ParameterSpec& spec = gradient.specs()[i];
    if (tensor != "*" && tensor != spec.name) continue;
    std::span<float> values = gradient.tensor(i);
    if (!index.empty()) {
      int64_t element = 0;
      for (size_t axis = 0; axis < index.size(); ++axis) element = element * spec.shape[axis] + index[axis];
      values = values.subspan(static_cast<size_t>(element), 1);
    }
    for (float& x : values) x = multiply ? x * value : value;
  }
}

std::optional<GradientFault> parse_gradient_fault(const std::string& text, const model::ModelConfig& model) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view kStart = "grad:";
  const std::string_view view = text;
  const size_t equals = view.find('='), at = view.rfind('@');
  if (!view.starts_with(kStart) || equals == std::string_view::npos || at == std::string_view::npos || at < equals) refuse(text);
  GradientFault fault{.text = text, .tensor = {}, .index = {}};
  std::string_view target = view.substr(kStart.size(), equals - kStart.size());
  if (const size_t bracket = target.find('['); bracket != std::string_view::npos) {
    if (target.back() != ']') refuse(text);
    fault.index = read_index(target.substr(bracket + 1, target.size() - bracket - 2), text);
    target = target.substr(0, bracket);
  }
  fault.tensor = target;
  read_value(view.substr(equals + 1, at - equals - 1), fault);
  read_steps(view.substr(at + 1), fault);
  check_target(fault, model);
  return fault;
}

std::optional<GradientFault> gradient_fault_of_environment(const model::ModelConfig& model) {
  const char* value = std::getenv("DZ_FAULT");
  return parse_gradient_fault(value == nullptr ? "" : value, model);
}

}  // namespace dz::train
