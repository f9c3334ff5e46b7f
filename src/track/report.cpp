#include "track/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "track/html.h"
#include "track/page.h"
#include "track/run_log.h"
#include "track/series.h"
#include "track/tables.h"

namespace dz::track {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// [[x, y], ...]; a NaN becomes null, which the page draws as a gap.
json as_json(const std::vector<Point>& points) {
  json out = json::array();
  for (const Point& point : points) out.push_back({static_cast<int64_t>(point.x), point.y});
  return out;
}

template <class Value>
std::vector<Point> points_of(const RunLog& log, Value value) {
  std::vector<Point> points;
  points.reserve(log.steps.size());
  for (const StepRow& row : log.steps) points.push_back({static_cast<double>(row.step), value(row)});
  return points;
}

json curves(const RunLog& log) {
  const auto loss = points_of(log, [](const StepRow& row) { return row.loss; });
  // A skipped step moved nothing, so it does not move the average; the span is a hundredth of the run, to show its course at any length.
  const auto kept = points_of(log, [](const StepRow& row) { return row.skipped ? std::nan("") : row.loss; });
  const double span = std::max(5.0, static_cast<double>(loss.size()) / 100);
  const auto thin = [](const std::vector<Point>& points) { return as_json(decimate(points, kMaxChartPoints)); };
  return {{"loss", thin(loss)},
          {"loss_smooth", thin(smooth(kept, span))},
          {"lr", thin(points_of(log, [](const StepRow& row) { return row.lr; }))},
          {"grad_norm", thin(points_of(log, [](const StepRow& row) { return row.grad_norm; }))},
          {"tokens_per_second", thin(points_of(log, [](const StepRow& row) { return row.tokens_per_second; }))},
          {"mfu", thin(points_of(log, [](const StepRow& row) { return row.mfu * 100; }))}};
}

// {name: [[step, loss], ...]} in the order of the first landmark; the total is last, as "all".
ordered_json held_out_curves(const RunLog& log) {
  ordered_json out = ordered_json::object();
  const auto add = [&](const std::string& name, int64_t step, double loss) { out[clean_utf8(name)].push_back({step, loss}); };
  for (const Landmark& landmark : log.landmarks)
    for (const SourceLoss& source : landmark.sources)
      if (landmark.split != "train") add(source.name, landmark.step, source.loss);
  for (const Landmark& landmark : log.landmarks)
    if (landmark.split != "train" && !landmark.split.empty()) add("all", landmark.step, landmark.total.loss);
  return out;
}

json skip_points(const RunLog& log) {
  std::vector<Point> points;
  for (const Skip& skip : log.skips) points.push_back({static_cast<double>(skip.step), skip.loss});
  return as_json(decimate(points, kMaxChartPoints));
}

struct Environment {
  ordered_json facts = ordered_json::object();
  ordered_json starts = ordered_json::array();
};

Environment read_environment(RunLog& log, const fs::path& run) {
  Environment environment;
  std::error_code ignored;
  if (fs::is_regular_file(run / "environment.json", ignored)) {
    environment.facts = ordered_json::parse(read_file(run / "environment.json"), nullptr, false);
    if (!environment.facts.is_object()) {
      environment.facts = ordered_json::object();
      log.warnings.push_back("environment.json is not readable");
    }
  }
  if (fs::is_regular_file(run / "starts.jsonl", ignored)) {
    std::istringstream lines(read_file(run / "starts.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      ordered_json start = ordered_json::parse(line, nullptr, false);
      if (start.is_object()) environment.starts.push_back(std::move(start));  // a torn line is a start that did not get far
    }
  }
  return environment;
}

std::string cell(const ordered_json& value) {
  if (value.is_string()) return escape_html(value.get_ref<const std::string&>());
  return escape_html(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string facts_table(const Environment& environment) {
  if (environment.facts.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : environment.facts.items()) rows.push_back({escape_html(key), cell(value)});
  return table({"machine", ""}, rows);
}

// Columns are the keys of all starts, in the order in which they first appear.
std::string starts_table(const Environment& environment) {
  std::vector<std::string> keys;
  for (const ordered_json& start : environment.starts)
    for (const auto& [key, value] : start.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  if (keys.empty()) return "<p>Not recorded.</p>\n";
  std::vector<std::vector<std::string>> rows;
  for (const ordered_json& start : environment.starts) {
    if (static_cast<int64_t>(rows.size()) >= kMaxTableRows) break;
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& key : keys) row.push_back(start.contains(key) ? cell(start[key]) : "–");
  }
  std::vector<std::string> head;
  for (const std::string& key : keys) head.push_back(escape_html(key == "step" ? "steps done" : key));
  return table(head, rows);
}

// Steps done when the run was started again; the first start is no resume.
json resume_steps(const Environment& environment) {
  json steps = json::array();
  for (const ordered_json& start : environment.starts)
    if (start.contains("step") && start["step"].is_number_integer() && start["step"].get<int64_t>() > 0)
      steps.push_back(start["step"].get<int64_t>());
  return steps;
}

std::string configuration(const fs::path& run) {
  std::string out;
  std::error_code ignored;
  for (const char* name : {"recipe.yaml", "topology.yaml", "run.yaml"}) {
    if (!fs::is_regular_file(run / name, ignored)) continue;
    out += std::string("<details><summary>") + name + "</summary><pre>" + escape_html(read_file(run / name)) + "</pre></details>\n";
  }
  return out;
}

std::string warning_list(const RunLog& log) {
  std::string out;
  for (const std::string& warning : log.warnings) out += "<p class=\"warning\">" + escape_html(warning) + "</p>\n";
  return out;
}

}  // namespace

std::string render_report(const fs::path& run) {
  RunLog log = read_run(run);
  const Environment environment = read_environment(log, run);
  const ordered_json data = {{"curves", curves(log)},
                             {"held_out", held_out_curves(log)},
                             {"skips", skip_points(log)},
                             {"resumes", resume_steps(environment)},
                             {"last_step", log.steps.back().step}};
  const std::string text = data.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return fill(kPageHtml, {{"css", std::string(kPageCss)},
                          {"chart_js", std::string(kChartJs)},
                          {"page_js", std::string(kPageJs)},
                          {"data", escape_json_for_script(text)},
                          {"name", escape_html(log.name)},
                          {"version", DZ_VERSION},
                          {"warnings", warning_list(log)},
                          {"tiles", summary_tiles(log)},
                          {"held_out", held_out_table(log)},
                          {"certificates", certificate_table(log)},
                          {"skips", skip_table(log)},
                          {"starts", starts_table(environment)},
                          {"samples", samples(log)},
                          {"environment", facts_table(environment)},
                          {"configuration", configuration(run)}});
}

fs::path write_report(const fs::path& run) {
  const fs::path path = run / "report.html";
  write_file_atomic(path, render_report(run));
  return path;
}

}  // namespace dz::track
