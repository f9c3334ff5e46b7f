#include "train/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace dz::train {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double share(int64_t part, int64_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0; }

// One list a figure, by rank.
Json ranks_json(const StepReport& report) {
  Json loss = Json::array(), z_loss = Json::array(), masked_labels = Json::array(), masked_instances = Json::array();
  const int64_t length = report.instances > 0 ? report.tokens / report.instances : 0;
  for (const RankReport& rank : report.ranks) {
    loss.push_back(number(static_cast<double>(rank.loss)));
    z_loss.push_back(number(static_cast<double>(rank.z_loss)));
    masked_labels.push_back(share(rank.instances * length - rank.labels, rank.instances * length));
    masked_instances.push_back(share(rank.filtered, rank.instances));
  }
  return {{"loss", loss}, {"z_loss", z_loss}, {"masked_labels", masked_labels}, {"masked_instances", masked_instances}};
}

// The step of a whole line, or -1.
int64_t step_of(std::string_view line) {
  const Json parsed = Json::parse(line, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_integer()) return -1;
  return parsed["step"].get<int64_t>();
}

}  // namespace

std::string hex_float(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:a}", value);
}

std::string to_json_line(const StepReport& report) {
  Json line;
  line["step"] = report.step;
  line["loss"] = number(static_cast<double>(report.loss));
  line["loss_hex"] = hex_float(report.loss);
  line["loss_global"] = number(static_cast<double>(report.loss_global));
  line["loss_olmo_core"] = number(static_cast<double>(report.loss_olmo_core));
  line["labels"] = report.labels;
  line["filtered"] = report.filtered;
  line["masked_labels"] = share(report.tokens - report.labels, report.tokens);
  line["masked_instances"] = share(report.filtered, report.instances);
  line["z_loss"] = number(static_cast<double>(report.z_loss));
  line["grad_norm"] = number(static_cast<double>(report.grad_norm));
  line["grad_norm_hex"] = hex_float(report.grad_norm);
  line["lr"] = report.lr;
  line["adam_step"] = report.adam_step;
  line["skipped"] = report.skipped;
  if (report.skipped) line["skip_reason"] = report.skip_reason;
  if (!report.fault.empty()) line["fault"] = report.fault;
  if (!report.ranks.empty()) line["ranks"] = ranks_json(report);
  line["tokens"] = report.tokens;
  line["tokens_total"] = report.tokens_total;
  line["seconds"] = report.seconds;
  line["tokens_per_second"] = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0.0;
  line["mfu"] = report.mfu;
  const auto phase = [&](const char* key, double seconds) { line[key] = report.seconds > 0 ? seconds / report.seconds : 0.0; };
  phase("data_share", report.phases.data);
  phase("forward_share", report.phases.forward);
  phase("head_share", report.phases.head);
  phase("backward_share", report.phases.backward);
  phase("optimizer_share", report.phases.optimizer);
  phase("communication_share", report.phases.communication);
  phase("digest_share", report.phases.digest);
  phase("save_share", report.phases.save);
  line["batch_digest"] = report.batch_digest.hex();
  if (report.digests) {
    line["digest"] = {{"parameters", report.digests->parameters.total.hex()},
                      {"moments", report.digests->moments.total.hex()},
                      {"trainer", report.digests->trainer.hex()}};
  }
  return line.dump() + "\n";
}

MetricsLog::MetricsLog(const fs::path& path, int64_t last_step) {
  if (fs::exists(path)) {
    const std::string text = read_file(path);
    std::string kept;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      const bool whole = end != std::string::npos;
      const std::string_view line = std::string_view(text).substr(begin, (whole ? end : text.size()) - begin);
      const int64_t step = whole ? step_of(line) : -1;
      if (step >= 1 && step <= last_step) {
        kept.append(line).append("\n");
      } else {
        ++removed_;
      }
      begin = whole ? end + 1 : text.size();
    }
    if (kept.size() != text.size()) write_file_atomic(path, kept);
  }
  file_ = File::append(path);
}

void MetricsLog::append(const StepReport& report) { file_.write(to_json_line(report)); }

}  // namespace dz::train
