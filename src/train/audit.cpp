#include "train/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "checkpoint/store.h"
#include "data/ledger.h"
#include "train/config.h"
#include "train/progress.h"

namespace dz::train {
namespace {

using Json = nlohmann::ordered_json;

void count(const TrainingData& data, const std::vector<uint8_t>& times, Audit& audit) {
  const data::Dataset& dataset = *data.dataset;
  audit.instances = dataset.instances();
  std::map<std::string, SourceShare> by_name;
  std::vector<std::string> names;
  for (const data::DatasetSource& source : dataset.sources()) {
    const auto [entry, added] = by_name.try_emplace(source.name, SourceShare{.name = source.name});
    if (added) names.push_back(source.name);
    entry->second.instances += source.instances;
    for (int64_t i = source.first; i < source.first + source.instances; ++i) entry->second.consumed += times[static_cast<size_t>(i)];
  }
  for (const uint8_t n : times) {
    ++(n == 0 ? audit.never : n == 1 ? audit.once : n == 2 ? audit.twice : audit.more);
    audit.consumed += n;
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  audit.at_most_once_an_epoch = times.empty() || *most <= *least + 1;
  for (const std::string& name : names) {
    SourceShare& share = by_name[name];
    share.planned_share = static_cast<double>(share.instances) / static_cast<double>(std::max<int64_t>(1, audit.instances));
    share.share = static_cast<double>(share.consumed) / static_cast<double>(std::max<int64_t>(1, audit.consumed));
    audit.shares.push_back(share);
  }
}

// The batch digests of metrics.jsonl by step.
std::map<int64_t, std::string> batch_digests(const fs::path& path) {
  std::map<int64_t, std::string> digests;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() && json.contains("batch_digest") &&
        json["batch_digest"].is_string())
      digests[json["step"].get<int64_t>()] = json["batch_digest"].get<std::string>();
  }
  return digests;
}

void check_tokens(const fs::path& run, const TrainingData& data, const Recipe& recipe, Audit& audit) {
  const std::map<int64_t, std::string> digests = batch_digests(run / "metrics.jsonl");
  const data::BatchChange change = batch_change(recipe, data.dataset->vocabulary());
  for (int64_t step = audit.first_step; step <= audit.last_step; ++step) {
    if (audit.difference && audit.difference->step <= step) return;
    const data::Batch batch = data::make_batch(*data.dataset, *data.order, step, recipe.data.document_masks, change);
    const auto digest = digests.find(step);
    if (digest != digests.end() && batch.digest.hex() == digest->second) {
      ++audit.tokens_checked;
      continue;
    }
    audit.difference = AuditDifference{.step = step,
                                       .planned = batch.ids,
                                       .consumed = batch.ids,
                                       .what = digest == digests.end() ? "metrics.jsonl has no batch digest of it, so its tokens cannot be proved"
                                                                       : "other tokens than those in the data now"};
    return;
  }
}

// What a checkpoint proves was done must be in the ledger, which is synced before it.
void check_ends(const fs::path& run, const TrainingData& data, Audit& audit) {
  const checkpoint::Newest newest = checkpoint::find_newest(run / "checkpoints");
  if (!newest.checkpoint) return;
  int64_t begin = 1;
  if (newest.checkpoint->has("parent.json")) {
    const Json parent = Json::parse(checkpoint::read_side_file(*newest.checkpoint, "parent.json"), nullptr, false);
    if (parent.is_object() && parent.contains("step") && parent["step"].is_number_integer()) begin = parent["step"].get<int64_t>() + 1;
    audit.notes.push_back(fmt::format("the run was forked: steps up to {} are its parent's", begin - 1));
  }
  const int64_t done = newest.checkpoint->step;
  const bool starts_late = begin <= done && (audit.first_step == 0 || audit.first_step > begin), ends_early = audit.last_step < done;
  if (!starts_late && !ends_early) return;
  const int64_t step = starts_late ? begin : std::max(begin, audit.last_step + 1);
  if (done < begin || (audit.difference && audit.difference->step <= step)) return;
  audit.difference = AuditDifference{.step = step,
                                     .planned = data.order->batch(step),
                                     .consumed = {},
                                     .what = fmt::format("no record, though the checkpoint of step {} says that it was done", done)};
}

std::string some(const std::vector<int64_t>& ids) {
  constexpr size_t kMost = 8;
  const size_t shown = std::min(ids.size(), kMost);
  return fmt::format("{}{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), " "), ids.size() > shown ? " ..." : "");
}

std::string how_often(const Audit& audit) {
  if (audit.twice + audit.more == 0) return "every instance came at most once";
  if (audit.at_most_once_an_epoch) return "no instance came again before every other had come as often";
  return "an epoch of this order leaves out its incomplete last batch, so that some instances come more often";
}

}  // namespace

Audit audit_records(const TrainingData& data, const AuditRecords& records) {
  Audit audit;
  std::vector<uint8_t> times(static_cast<size_t>(data.dataset->instances()), 0);
  const auto differ = [&](int64_t step, const std::vector<int64_t>& consumed, const char* what) {
    if (!audit.difference) audit.difference = AuditDifference{.step = step, .planned = data.order->batch(step), .consumed = consumed, .what = what};
  };
  records([&](int64_t step, const std::vector<int64_t>& ids) {
    for (const int64_t id : ids) {
      uint8_t& n = times[static_cast<size_t>(id)];
      if (n < 255) ++n;
    }
    if (audit.last_step == 0) {
      audit.first_step = step;
    } else if (step <= audit.last_step) {
      differ(step, ids, "recorded twice, or out of order");
    } else if (step != audit.last_step + 1) {
      differ(audit.last_step + 1, {}, "no record");
    }
    audit.last_step = std::max(audit.last_step, step);
    if (!audit.difference && ids != data.order->batch(step)) differ(step, ids, "other instances");
  });
  count(data, times, audit);
  return audit;
}

Audit audit_run(const fs::path& run, const AuditOptions& options, ThreadPool& pool) {
  const fs::path recipe = run / "recipe.yaml", ledger = run / "ledger" / "consumed.bin";
  if (!fs::exists(recipe)) throw InputError(Complaint{.where = run.string(), .found = "no recipe.yaml", .expected = "a run directory", .hint = ""});
  if (!fs::exists(ledger)) {
    throw InputError(Complaint{.where = ledger.string(),
                               .found = "no ledger",
                               .expected = "what train writes beside metrics.jsonl",
                               .hint = "without it nothing can be audited"});
  }
  Config config = load_config(recipe, options.sets);
  const TrainingData data = open_data(config.recipe, {.cache = run / "cache"}, pool);
  if (const int64_t instances = data::ledger_instances(ledger); instances != 0 && instances != data.dataset->instances()) {
    throw DataError(Complaint{.where = ledger.string(),
                              .found = fmt::format("a ledger over {} instances", instances),
                              .expected = fmt::format("one over {}, those of the data that the recipe names", data.dataset->instances()),
                              .hint = "the data was changed since the run; --set recipe.data.KEY=VALUE names where the data of the run is"});
  }
  bool torn = false;
  Audit audit = audit_records(
      data, [&](const auto& use) { torn = data::read_ledger(ledger, [&](const data::LedgerRecord& record) { use(record.step, record.ids); }).torn; });
  if (torn) audit.notes.push_back("the last record is torn: the run was killed while writing it, or is writing it now");
  check_ends(run, data, audit);
  if (options.tokens && audit.last_step > 0) check_tokens(run, data, config.recipe, audit);
  return audit;
}

std::string to_json(const Audit& audit) {
  Json json{{"as_planned", !audit.difference},
            {"first_step", audit.first_step},
            {"last_step", audit.last_step},
            {"instances", audit.instances},
            {"consumed", audit.consumed},
            {"never", audit.never},
            {"once", audit.once},
            {"twice", audit.twice},
            {"more", audit.more},
            {"at_most_once_an_epoch", audit.at_most_once_an_epoch},
            {"tokens_checked_steps", audit.tokens_checked}};
  json["sources"] = Json::array();
  for (const SourceShare& share : audit.shares) {
    json["sources"].push_back({{"name", share.name},
                               {"instances", share.instances},
                               {"consumed", share.consumed},
                               {"planned_share", share.planned_share},
                               {"share", share.share}});
  }
  if (audit.difference) {
    json["difference"] = {{"step", audit.difference->step},
                          {"what", audit.difference->what},
                          {"planned", audit.difference->planned},
                          {"consumed", audit.difference->consumed}};
  }
  json["notes"] = audit.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_text(const Audit& audit) {
  if (audit.last_step == 0 && !audit.difference) return "audit     the ledger holds no step yet\n";
  std::string text = fmt::format("steps     {} to {}   {} instances consumed of {}   {:.3f} epochs\n", audit.first_step, audit.last_step,
                                 with_commas(audit.consumed), with_commas(audit.instances),
                                 static_cast<double>(audit.consumed) / static_cast<double>(std::max<int64_t>(1, audit.instances)));
  text += fmt::format("coverage  never {}   once {}   twice {}   more {}\n", with_commas(audit.never), with_commas(audit.once),
                      with_commas(audit.twice), with_commas(audit.more));
  text += fmt::format("source    {:<28} {:>14} {:>14} {:>9} {:>9}\n", "", "instances", "consumed", "of data", "of run");
  for (const SourceShare& share : audit.shares) {
    text += fmt::format("          {:<28} {:>14} {:>14} {:>8.2f}% {:>8.2f}%\n", share.name, with_commas(share.instances), with_commas(share.consumed),
                        100 * share.planned_share, 100 * share.share);
  }
  if (audit.tokens_checked > 0) text += fmt::format("tokens    of {} steps read again and compared with their digests\n", audit.tokens_checked);
  for (const std::string& note : audit.notes) text += "note      " + note + "\n";
  if (!audit.difference) return text + "audit     as planned: every step consumed the instances that the recipe gives; " + how_often(audit) + "\n";
  const AuditDifference& difference = *audit.difference;
  text += fmt::format("audit     DIFFERENT at step {}: {}\n", difference.step, difference.what);
  if (difference.planned != difference.consumed)
    text += fmt::format("          planned   {}\n          consumed  {}\n", some(difference.planned), some(difference.consumed));
  return text;
}

}  // namespace dz::train
