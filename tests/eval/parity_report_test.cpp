// The verdict: what passes which limit, and what a person and a program are told.
#include "eval/parity_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace dz::eval {
namespace {

ParityReport good() {
  model::ParityStats stats{.positions = 4, .mean_kl = 1e-9, .max_kl = 2e-9, .max_abs = 1e-5, .top1_agreement = 0.75, .top1_mismatches = 1, .ties = 1};
  stats.mismatches = {{.row = 3, .reference = 7, .ours = 8, .reference_gap = 1e-6, .our_gap = 2e-6, .tie = true}};
  ParityReport report{.reference = "a", .model = "b", .dtype = "fp32", .limits = default_limits("fp32")};
  report.pairs.push_back(
      {.name = "x", .instances = 2, .seq = 2, .logits = stats, .hidden = {{0, "the embedding", 0, 0}, {1, "layer 1", 1e-6, 1e-7}}});
  report.gradients = {{"w", 1e-6}};
  report.gradients_of = "x";
  return report;
}

std::string only_line(const ParityReport& report) {
  const std::vector<std::string> lines = beyond_limits(report);
  return lines.size() == 1 ? lines[0] : std::to_string(lines.size()) + " lines";
}

TEST(ParityVerdict, EachLimitCountsAndANanPassesEveryOne) {
  EXPECT_TRUE(beyond_limits(good()).empty());
  const auto with = [&](auto change) {
    ParityReport report = good();
    change(report);
    return only_line(report);
  };
  for (const double bad : {0.5, std::nan("")}) {
    EXPECT_NE(with([&](ParityReport& report) { report.pairs[0].logits->mean_kl = bad; }).find("x: mean KL"), std::string::npos);
    EXPECT_NE(with([&](ParityReport& report) { report.pairs[0].logits->max_kl = bad; }).find("x: largest KL"), std::string::npos);
    EXPECT_NE(with([&](ParityReport& report) { report.pairs[0].logsumexp_max_abs = bad; }).find("x: logsumexp"), std::string::npos);
    EXPECT_NE(with([&](ParityReport& report) { report.pairs[0].hidden[0].relative_rms = bad; }).find("the embedding"), std::string::npos);
    EXPECT_NE(with([&](ParityReport& report) { report.pairs[0].hidden[1].relative_rms = bad; }).find("layer 1"), std::string::npos);
    EXPECT_NE(with([&](ParityReport& report) { report.gradients[0].relative = bad; }).find("gradient of w"), std::string::npos);
  }
  EXPECT_NE(with([&](ParityReport& report) { report.limits.max_abs = 1e-6; }).find("difference of a logit"), std::string::npos);
  EXPECT_TRUE(beyond_limits(good()).empty()) << "unless it is given";
}

TEST(ParityVerdict, JsonHoldsEverything) {
  ParityReport report = good();
  report.floor.push_back({.name = "x", .logits = model::ParityStats{.positions = 4, .mean_kl = 1e-4}});
  report.pairs[0].logits->cosine_min = std::nan("");
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["same"], true);
  const nlohmann::json& pair = json["pairs"][0];
  EXPECT_EQ(pair["max_kl"], 2e-9);
  EXPECT_EQ(pair["floor"]["mean_kl"], 1e-4);
  EXPECT_TRUE(pair["cosine_min"].is_null()) << "what is no number";
  EXPECT_EQ(pair["mismatches"][0]["instance"], 1);
  EXPECT_EQ(pair["mismatches"][0]["position"], 1);
  EXPECT_EQ(pair["mismatches"][0]["reference"], 7);
  EXPECT_EQ(pair["hidden"][1]["after"], "layer 1");
  EXPECT_EQ(json["gradients"][0]["tensor"], "w");
  report.gradients[0].relative = 1;
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["same"], false);
}

TEST(ParityVerdict, TextNamesWhatDiffersAndWhere) {
  ParityReport report = good();
  EXPECT_NE(to_text(report).find("instance 1, position 1: 7 (ahead by 1.00e-06), ours 8 (by 2.00e-06), a tie"), std::string::npos) << to_text(report);
  EXPECT_NE(to_text(report).find("same  "), std::string::npos);
  report.gradients[0].relative = 1;
  EXPECT_NE(to_text(report).find("DIFFERENT  gradient of w"), std::string::npos) << to_text(report);
  EXPECT_EQ(to_text(report).find("same  "), std::string::npos);
  report.pairs[0].logits->mismatches.assign(20, report.pairs[0].logits->mismatches[0]);
  report.pairs[0].logits->top1_mismatches = 1500;
  EXPECT_NE(to_text(report).find("and at 1492 more positions"), std::string::npos) << to_text(report);
}

}  // namespace
}  // namespace dz::eval
