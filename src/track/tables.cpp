#include "track/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "track/html.h"
#include "track/report.h"

namespace dz::track {
namespace {

constexpr const char* kDash = "–";

std::string tile(std::string_view label, std::string_view value, std::string_view note = "") {
  return fmt::format("<div class=\"tile\"><span class=\"label\">{}</span><span class=\"value\">{}</span><span class=\"note\">{}</span></div>\n",
                     label, value, note);
}

// The ends of a digest, all of it on hover.
std::string digest_cell(const std::string& digest) {
  if (digest.empty()) return kDash;
  if (digest.size() <= 16) return "<code>" + escape_html(digest) + "</code>";
  return fmt::format("<code title=\"{}\">{}…{}</code>", escape_html(digest), escape_html(digest.substr(0, 8)),
                     escape_html(digest.substr(digest.size() - 4)));
}

std::string code(const std::string& text) { return text.empty() ? kDash : "<code>" + escape_html(text) + "</code>"; }

double median_speed(const RunLog& log) {
  std::vector<double> speeds;
  for (const StepRow& row : log.steps)
    if (std::isfinite(row.tokens_per_second)) speeds.push_back(row.tokens_per_second);
  if (speeds.empty()) return std::nan("");
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

double total_seconds(const RunLog& log) {
  double seconds = 0;
  for (const StepRow& row : log.steps)
    if (std::isfinite(row.seconds)) seconds += row.seconds;
  return seconds;
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{:.1f} s", seconds);
}

// Landmarks that measured a loss on text that was held out.
std::vector<const Landmark*> held_out(const RunLog& log) {
  std::vector<const Landmark*> found;
  for (const Landmark& landmark : log.landmarks)
    if (landmark.split != "train" && std::isfinite(landmark.total.loss) && !landmark.split.empty()) found.push_back(&landmark);
  return found;
}

}  // namespace

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string short_number(double value) { return std::isfinite(value) ? fmt::format("{:#.4g}", value) : kDash; }

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& cell : head) out += "<th>" + cell + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + cell + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

std::string summary_tiles(const RunLog& log) {
  const StepRow& first = log.steps.front();
  const StepRow& last = log.steps.back();
  std::string out = tile("steps", with_commas(last.step), fmt::format("{} tokens", with_commas(last.tokens_total)));
  out += tile("training loss", short_number(last.loss), fmt::format("{} at step {}", short_number(first.loss), with_commas(first.step)));
  const auto landmarks = held_out(log);
  if (!landmarks.empty())
    out += tile("held-out loss", short_number(landmarks.back()->total.loss),
                fmt::format("{} at step {}", short_number(landmarks.front()->total.loss), with_commas(landmarks.front()->step)));
  const double speed = median_speed(log);
  out += tile("tokens a second", std::isfinite(speed) ? with_commas(std::llround(speed)) : kDash, "median step");
  out += tile("computing time", duration(total_seconds(log)), "sum of the steps");
  out += tile("skipped steps", with_commas(static_cast<int64_t>(log.skips.size())), log.skips.empty() ? "none" : "see below");
  return out;
}

std::string certificate_table(const RunLog& log) {
  std::string out;
  const auto final = std::find_if(log.certificates.rbegin(), log.certificates.rend(), [](const Certificate& c) { return !c.parameters.empty(); });
  if (final != log.certificates.rend()) {
    out += fmt::format("<p>State after step {}. Another run of this recipe must show the same three numbers, whatever carried it.</p>\n",
                       with_commas(final->step));
    out += fmt::format("<dl class=\"digests\"><dt>parameters</dt><dd>{}</dd><dt>moments</dt><dd>{}</dd><dt>trainer</dt><dd>{}</dd></dl>\n",
                       code(final->parameters), code(final->moments), code(final->trainer));
  }
  std::vector<std::vector<std::string>> rows;
  const int64_t count = static_cast<int64_t>(log.certificates.size()), left_out = std::max<int64_t>(0, count - kMaxTableRows);
  for (int64_t i = left_out; i < count; ++i) {
    const Certificate& c = log.certificates[static_cast<size_t>(i)];
    rows.push_back({with_commas(c.step), digest_cell(c.batch), code(c.loss_hex), code(c.grad_norm_hex), digest_cell(c.parameters),
                    digest_cell(c.moments), digest_cell(c.trainer)});
  }
  if (left_out > 0) out += fmt::format("<p>The last {} of {}; all are in metrics.jsonl.</p>\n", with_commas(count - left_out), with_commas(count));
  return out + table({"step", "batch", "loss", "gradient norm", "parameters", "moments", "trainer"}, rows);
}

std::string skip_table(const RunLog& log) {
  if (log.skips.empty()) return "<p>No step was skipped.</p>\n";
  std::vector<std::vector<std::string>> rows;
  const int64_t count = static_cast<int64_t>(log.skips.size()), shown = std::min(count, kMaxTableRows);
  for (int64_t i = 0; i < shown; ++i) {
    const Skip& skip = log.skips[static_cast<size_t>(i)];
    rows.push_back({with_commas(skip.step), short_number(skip.loss), short_number(skip.grad_norm), escape_html(skip.reason)});
  }
  std::string out = table({"step", "loss", "gradient norm", "reason"}, rows);
  if (shown < count) out += fmt::format("<p>The first {} of {}; all are in metrics.jsonl.</p>\n", with_commas(shown), with_commas(count));
  return out;
}

std::string held_out_table(const RunLog& log) {
  const auto landmarks = held_out(log);
  if (landmarks.empty()) return "<p>No held-out loss was measured.</p>\n";
  const Landmark& first = *landmarks.front();
  const Landmark& last = *landmarks.back();
  std::map<std::string, double> before;
  for (const SourceLoss& source : first.sources) before[source.name] = source.loss;
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const std::string& name, const SourceLoss& source, double start) {
    rows.push_back({name, with_commas(source.tokens), short_number(start), short_number(source.loss), short_number(source.loss - start),
                    short_number(source.perplexity)});
  };
  for (const SourceLoss& source : last.sources) {
    const auto start = before.find(source.name);
    row(escape_html(source.name), source, start == before.end() ? std::nan("") : start->second);
  }
  row("<strong>all</strong>", last.total, first.total.loss);
  return table({"source", "tokens", fmt::format("loss at step {}", with_commas(first.step)), fmt::format("loss at step {}", with_commas(last.step)),
                "change", fmt::format("perplexity at step {}", with_commas(last.step))},
               rows);
}

std::string samples(const RunLog& log) {
  constexpr size_t kMaxSamples = 6, kMaxBytes = 20'000;
  std::string out;
  size_t shown = 0;
  for (auto landmark = log.landmarks.rbegin(); landmark != log.landmarks.rend() && shown < kMaxSamples; ++landmark) {
    if (landmark->sample.empty()) continue;
    out += fmt::format("<details{}><summary>step {}</summary><pre>{}</pre></details>\n", shown == 0 ? " open" : "", with_commas(landmark->step),
                       escape_html(std::string_view(landmark->sample).substr(0, kMaxBytes)));
    ++shown;
  }
  return out.empty() ? "<p>No sample was written.</p>\n" : out;
}

}  // namespace dz::track
