#include "track/run_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace dz::track {
namespace {

using nlohmann::json;

double number(const json& object, const char* key) {
  const auto it = object.find(key);
  const double value = it != object.end() && it->is_number() ? it->get<double>() : std::numeric_limits<double>::quiet_NaN();
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

std::string text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

int64_t integer(const json& object, const char* key, int64_t otherwise) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : otherwise;
}

StepRow step_row(const json& line, int64_t step) {
  const auto skipped = line.find("skipped");
  return {.step = step,
          .tokens_total = integer(line, "tokens_total", 0),
          .loss = number(line, "loss"),
          .z_loss = number(line, "z_loss"),
          .grad_norm = number(line, "grad_norm"),
          .lr = number(line, "lr"),
          .seconds = number(line, "seconds"),
          .tokens_per_second = number(line, "tokens_per_second"),
          .mfu = number(line, "mfu"),
          .skipped = skipped != line.end() && skipped->is_boolean() && skipped->get<bool>()};
}

Certificate certificate(const json& line, int64_t step) {
  Certificate out{.step = step,
                  .batch = text(line, "batch_digest"),
                  .loss_hex = text(line, "loss_hex"),
                  .grad_norm_hex = text(line, "grad_norm_hex"),
                  .parameters = {},
                  .moments = {},
                  .trainer = {}};
  const auto digest = line.find("digest");
  if (digest != line.end() && digest->is_object()) {
    out.parameters = text(*digest, "parameters");
    out.moments = text(*digest, "moments");
    out.trainer = text(*digest, "trainer");
  }
  return out;
}

// A run that was cut back and went on writes a step again: what it wrote last is what it did.
template <class Row>
void drop_from(std::vector<Row>& rows, int64_t step) {
  while (!rows.empty() && rows.back().step >= step) rows.pop_back();
}

bool add_line(RunLog& log, Certificate& last, std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  const int64_t step = object.is_object() ? integer(object, "step", -1) : -1;
  if (step < 0) return false;
  drop_from(log.steps, step);
  drop_from(log.skips, step);
  drop_from(log.certificates, step);
  const StepRow& row = log.steps.emplace_back(step_row(object, step));
  if (row.skipped) log.skips.push_back({step, row.loss, row.grad_norm, text(object, "skip_reason")});
  last = certificate(object, step);
  if (!last.parameters.empty()) log.certificates.push_back(last);
  return true;
}

void read_metrics(RunLog& log, const fs::path& path) {
  const std::string bytes = read_file(path);  // not mapped: a trainer that resumes meanwhile may shorten the file
  std::string_view rest = bytes;
  Certificate last;
  int64_t number_of_line = 0, broken = 0, first_broken = 0;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++number_of_line;
    if (line.empty() || add_line(log, last, line)) continue;
    if (end == std::string_view::npos) {
      log.warnings.push_back("metrics.jsonl ends in the middle of a line: the run is still going, or was stopped while writing it");
    } else if (broken++ == 0) {
      first_broken = number_of_line;
    }
  }
  if (broken > 0)
    log.warnings.push_back("metrics.jsonl: " + std::to_string(broken) + " lines are not readable, the first is line " + std::to_string(first_broken));
  if (!log.steps.empty() && (log.certificates.empty() || log.certificates.back().step != last.step)) log.certificates.push_back(last);
}

SourceLoss source_loss(const json& object) {
  return {text(object, "name"), integer(object, "tokens", 0), number(object, "loss"), number(object, "perplexity")};
}

bool read_loss(Landmark& landmark, const fs::path& path) {
  const json object = json::parse(read_file(path), nullptr, false);
  if (!object.is_object()) return false;
  landmark.split = text(object, "split");
  const auto sources = object.find("sources");
  if (sources != object.end() && sources->is_array())
    for (const json& source : *sources)
      if (source.is_object()) landmark.sources.push_back(source_loss(source));
  const auto total = object.find("total");
  if (total == object.end() || !total->is_object()) return false;
  landmark.total = source_loss(*total);
  return true;
}

std::optional<int64_t> step_of(const std::string& directory) {
  constexpr std::string_view kPrefix = "step-";
  if (!directory.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = directory.data() + directory.size();
  const auto [stop, error] = std::from_chars(directory.data() + kPrefix.size(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

void read_landmarks(RunLog& log, const fs::path& directory) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::optional<int64_t> step = step_of(entry.path().filename());
    if (!step) continue;
    Landmark landmark{.step = *step, .split = {}, .sources = {}, .total = {}, .sample = {}};
    const fs::path loss = entry.path() / "loss.json", sample = entry.path() / "sample.txt";
    if (fs::is_regular_file(loss, ignored) && !read_loss(landmark, loss))
      log.warnings.push_back("landmarks/" + entry.path().filename().string() + "/loss.json is not readable");
    if (fs::is_regular_file(sample, ignored)) landmark.sample = read_file(sample);
    log.landmarks.push_back(std::move(landmark));
  }
  std::sort(log.landmarks.begin(), log.landmarks.end(), [](const Landmark& a, const Landmark& b) { return a.step < b.step; });
}

}  // namespace

RunLog read_run(const fs::path& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored))
    throw InputError({run.string(), "no directory of that name", "a run directory", "it is the --dir of a training run"});
  const fs::path metrics = run / "metrics.jsonl";
  if (!fs::is_regular_file(metrics, ignored))
    throw InputError({run.string(), "no metrics.jsonl", "a run directory that training wrote to", "check the path"});
  RunLog log;
  log.name = fs::absolute(run).lexically_normal().filename();
  if (log.name.empty()) log.name = fs::absolute(run).lexically_normal().parent_path().filename();
  read_metrics(log, metrics);
  if (log.steps.empty())
    throw InputError({metrics.string(), "no finished step", "at least one line that describes a step", "train for a step, then try again"});
  read_landmarks(log, run / "landmarks");
  return log;
}

}  // namespace dz::track
