#include <cmath>
#include <nlohmann/json.hpp>

#include "eval/parity_report.h"

namespace dz::eval {
namespace {

using Json = nlohmann::ordered_json;

void add_statistics(const model::ParityStats& stats, Json& json) {
  json["positions"] = stats.positions;
  json["mean_kl"] = stats.mean_kl;
  json["max_kl"] = stats.max_kl;
  json["reverse_mean_kl"] = stats.reverse_mean_kl;
  json["max_abs"] = stats.max_abs;
  json["mean_abs"] = stats.mean_abs;
  json["rms"] = stats.rms;
  json["cosine_min"] = stats.cosine_min;
  json["top1_agreement"] = stats.top1_agreement;
  json["top1_mismatches"] = stats.top1_mismatches;
  json["ties"] = stats.ties;
  json["top5_overlap"] = stats.top5_overlap;
  json["top10_overlap"] = stats.top10_overlap;
  json["mean_rank"] = stats.mean_rank;
  json["max_rank"] = stats.max_rank;
  if (stats.targets > 0) {
    json["reference_loss"] = stats.reference_loss;
    json["loss"] = stats.loss;
  }
}

Json mismatches_of(const PairParity& pair) {
  Json list = Json::array();
  for (const model::Top1Mismatch& one : pair.logits->mismatches) {
    list.push_back({{"instance", one.row / pair.seq},
                    {"position", one.row % pair.seq},
                    {"reference", one.reference},
                    {"ours", one.ours},
                    {"reference_gap", one.reference_gap},
                    {"our_gap", one.our_gap},
                    {"tie", one.tie}});
  }
  return list;
}

Json hidden_of(const PairParity& pair) {
  Json list = Json::array();
  for (const HiddenError& error : pair.hidden)
    list.push_back({{"index", error.index}, {"after", error.after}, {"max_abs", error.max_abs}, {"relative_rms", error.relative_rms}});
  return list;
}

Json to_object(const PairParity& pair) {
  Json json;
  json["name"] = pair.name;
  if (pair.logits) {
    add_statistics(*pair.logits, json);
    json["mismatches"] = mismatches_of(pair);
  }
  if (pair.logsumexp_max_abs) json["logsumexp_max_abs"] = *pair.logsumexp_max_abs;
  if (pair.top1_agreement) json["top1_agreement"] = *pair.top1_agreement;
  if (pair.float64) {
    json["float64"]["rms"] = pair.float64->ours;
    if (pair.float64->reference) json["float64"]["reference_rms"] = *pair.float64->reference;
  }
  if (!pair.hidden.empty()) json["hidden"] = hidden_of(pair);
  return json;
}

}  // namespace

std::string to_json(const ParityReport& report) {
  Json json{{"reference", report.reference}, {"model", report.model}, {"dtype", report.dtype}, {"columns", report.columns}};
  Json& limits = json["limits"];
  limits = {{"mean_kl", report.limits.mean_kl},
            {"max_kl", report.limits.max_kl},
            {"logsumexp", report.limits.logsumexp},
            {"hidden", report.limits.hidden},
            {"gradient", report.limits.gradient}};
  if (report.limits.max_abs) limits["max_abs"] = *report.limits.max_abs;
  json["pairs"] = Json::array();
  for (const PairParity& pair : report.pairs) {
    Json object = to_object(pair);
    if (const PairParity* floor = report.floor_of(pair.name)) {
      object["floor"] = to_object(*floor);
      object["floor"].erase("name");
    }
    json["pairs"].push_back(std::move(object));
  }
  if (!report.gradients.empty()) {
    json["gradients_of"] = report.gradients_of;
    for (const GradientError& error : report.gradients) json["gradients"].push_back({{"tensor", error.tensor}, {"relative", error.relative}});
  }
  const std::vector<std::string> beyond = beyond_limits(report);
  json["beyond"] = beyond;
  json["same"] = beyond.empty();
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";  // what is not finite becomes null
}

}  // namespace dz::eval
