#include "eval/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"

namespace dz::eval {
namespace {

using checkpoint::Checkpoint;

// What one side brings.
struct Side {
  fs::path path;
  CertificateLog log;
  std::map<int64_t, fs::path> checkpoints;  // step -> directory, complete or not
};

Side open_side(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) throw InputError(path.string() + ": no such directory; expected a run or a checkpoint");
  Side side{path, {}, {}};
  if (fs::exists(path / "manifest.json", ignored) && fs::exists(path / "model.safetensors", ignored)) {
    side.checkpoints[checkpoint::open_checkpoint(path).step] = path;
    return side;
  }
  if (!fs::exists(path / "metrics.jsonl", ignored) && !fs::exists(path / "checkpoints", ignored))
    throw InputError(path.string() + ": neither metrics.jsonl nor checkpoints; expected a run or a checkpoint");
  side.log = read_certificates(path);
  for (const int64_t step : checkpoint::list_steps(path / "checkpoints")) side.checkpoints[step] = path / "checkpoints" / checkpoint::step_name(step);
  return side;
}

DigestText digest_of(const Checkpoint& checkpoint) { return {checkpoint.parameters.hex(), checkpoint.moments.hex(), checkpoint.trainer.hex()}; }

// The checkpoint of a step, whole; nothing when its save never came to an end.
std::optional<Checkpoint> whole_checkpoint(const Side& side, int64_t step, std::vector<std::string>& notes) {
  const auto place = side.checkpoints.find(step);
  if (place == side.checkpoints.end()) return std::nullopt;
  std::error_code ignored;
  if (!fs::exists(place->second / "manifest.json", ignored)) {
    notes.push_back(place->second.string() + ": no manifest, its save was interrupted; left out");
    return std::nullopt;
  }
  Checkpoint checkpoint = checkpoint::open_checkpoint(place->second);
  checkpoint::verify_files(checkpoint);
  return checkpoint;
}

std::string against(const char* what, const std::string& a, const std::string& b) { return fmt::format("{} {} against {}", what, a, b); }

// What differs between two lines of one step, first cause first; "" when nothing does. A field that one of them lacks proves nothing.
std::string line_difference(const Certificate& a, const Certificate& b) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, const std::string& left, const std::string& right) {
    if (!left.empty() && !right.empty() && left != right) parts.push_back(against(what, left, right));
  };
  compare("batch ids", a.batch, b.batch);
  const bool batches_equal = parts.empty();
  compare("learning rate", a.lr, b.lr);
  compare("loss", a.loss, b.loss);
  compare("norm", a.norm, b.norm);
  compare("skipped", a.skipped ? "yes" : "no", b.skipped ? "yes" : "no");
  if (parts.empty()) return "";
  return fmt::format("{}{}", fmt::join(parts, ", "), batches_equal && !a.batch.empty() && !b.batch.empty() ? ", batch ids equal" : "");
}

std::string digest_difference(const DigestText& a, const DigestText& b) {
  std::vector<std::string> parts;
  if (a.parameters != b.parameters) parts.push_back(against("digest of parameters", a.parameters, b.parameters));
  if (a.moments != b.moments) parts.push_back(against("digest of moments", a.moments, b.moments));
  if (a.trainer != b.trainer) parts.push_back(against("digest of the trainer state", a.trainer, b.trainer));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<float> read_values(const checkpoint::TensorSource& source, const checkpoint::StoredTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  source.read_f32(tensor, values);
  return values;
}

bool same_value(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b); }

TensorDifference element_difference(const Checkpoint& a, const Checkpoint& b, const char* file, const std::string& name) {
  TensorDifference difference{.step = a.step, .name = name, .what = "", .element = -1, .a = 0, .b = 0};
  const auto left = checkpoint::TensorSource::open(a.path / file), right = checkpoint::TensorSource::open(b.path / file);
  const checkpoint::StoredTensor *ours = left.find(name), *theirs = right.find(name);
  if (!ours || !theirs) {
    difference.what = ours ? "only in the first" : "only in the second";
  } else if (ours->shape != theirs->shape) {
    difference.what = fmt::format("shape [{}] against [{}]", fmt::join(ours->shape, ", "), fmt::join(theirs->shape, ", "));
  } else {
    const std::vector<float> x = read_values(left, *ours), y = read_values(right, *theirs);
    const auto place = std::mismatch(x.begin(), x.end(), y.begin(), same_value);
    difference.element = place.first - x.begin();
    if (place.first == x.end()) {
      difference.what = "digests differ but no element does";  // digests.json and tensors disagree: made by a broken writer
    } else {
      difference.a = *place.first;
      difference.b = *place.second;
    }
  }
  return difference;
}

// The first name, in byte order, whose digests differ or which only one side has.
std::optional<std::string> first_name(const checkpoint::TensorsDigest& a, const checkpoint::TensorsDigest& b) {
  const auto place = std::mismatch(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end());
  const bool left = place.first != a.tensors.end(), right = place.second != b.tensors.end();
  if (!left && !right) return std::nullopt;
  if (left && right) return std::min(place.first->name, place.second->name);
  return left ? place.first->name : place.second->name;
}

std::optional<TensorDifference> tensor_difference(const Checkpoint& a, const Checkpoint& b) {
  const checkpoint::StateDigests left = checkpoint::read_digests(a), right = checkpoint::read_digests(b);
  if (const auto name = first_name(left.parameters, right.parameters)) return element_difference(a, b, "model.safetensors", *name);
  if (const auto name = first_name(left.moments, right.moments)) return element_difference(a, b, "moments.safetensors", *name);
  return std::nullopt;
}

// All that the two sides can say about the state after one step.
class StepComparison {
 public:
  StepComparison(const Side& a, const Side& b, int64_t step, Verification& result) : a_(a), b_(b), step_(step), result_(result) {}

  void run() {
    const Certificate *left = certificate(a_), *right = certificate(b_);
    if (left && right) {
      result_.steps.push_back(step_);
      note_difference(line_difference(*left, *right));
    }
    const bool wanted = may_have_digest(a_, left) && may_have_digest(b_, right);
    if (!wanted) return;
    const std::optional<Checkpoint> ours = whole_checkpoint(a_, step_, result_.notes), theirs = whole_checkpoint(b_, step_, result_.notes);
    const std::optional<DigestText> first = digest(a_, left, ours), second = digest(b_, right, theirs);
    if (ours && theirs) result_.checkpoints.push_back(step_);
    if (!first || !second) return;
    result_.digest_steps.push_back(step_);
    note_difference(digest_difference(*first, *second));
    if (!result_.first) {
      result_.last_equal_digest = step_;
      result_.digest = first;
    } else if (!result_.tensor && ours && theirs) {
      result_.tensor = tensor_difference(*ours, *theirs);
    }
  }

 private:
  const Certificate* certificate(const Side& side) const {
    const auto place = side.log.steps.find(step_);
    return place == side.log.steps.end() ? nullptr : &place->second;
  }
  bool may_have_digest(const Side& side, const Certificate* line) const { return side.checkpoints.contains(step_) || (line && line->digest); }
  std::optional<DigestText> digest(const Side& side, const Certificate* line, const std::optional<Checkpoint>& checkpoint) {
    if (!checkpoint) return line ? line->digest : std::nullopt;
    DigestText text = digest_of(*checkpoint);
    if (line && line->digest && *line->digest != text)
      note_difference(side.path.string() + " contradicts itself: its metrics line and its checkpoint have different digests");
    return text;
  }
  void note_difference(const std::string& what) {
    if (!what.empty() && !result_.first) result_.first = StepDifference{step_, what};
  }

  const Side& a_;
  const Side& b_;
  int64_t step_;
  Verification& result_;
};

void compare_settings(const fs::path& a, const fs::path& b, Verification& result) {
  const std::string left = environment_value(a, "recipe"), right = environment_value(b, "recipe");
  const std::vector<SettingDifference> recipe = yaml_differences(a / "recipe.yaml", b / "recipe.yaml");
  // The hash covers the contents of the data and leaves paths out, so it decides where both runs have it.
  result.same_recipe = !left.empty() && !right.empty() ? left == right : recipe.empty();
  const auto add = [&](const SettingDifference& setting) {
    result.settings.push_back(fmt::format("{}: {} / {}", setting.key, setting.a, setting.b));
  };
  if (!result.same_recipe) std::for_each(recipe.begin(), recipe.end(), add);
  if (!result.same_recipe && recipe.empty()) result.settings.push_back("recipe: the same keys, so the data differ");
  const std::vector<SettingDifference> topology = yaml_differences(a / "topology.yaml", b / "topology.yaml");
  std::for_each(topology.begin(), topology.end(), add);
  for (const char* key : {"isa", "numerics", "deltazero"}) {
    const SettingDifference setting{key, environment_value(a, key), environment_value(b, key)};
    if (setting.a != setting.b) add(setting);
  }
}

}  // namespace

Verification verify(const fs::path& a, const fs::path& b) {
  const Side left = open_side(a), right = open_side(b);
  Verification result;
  for (const Side* side : {&left, &right}) result.notes.insert(result.notes.end(), side->log.notes.begin(), side->log.notes.end());
  std::vector<int64_t> steps;
  for (const Side* side : {&left, &right}) {
    for (const auto& [step, unused] : side->log.steps) steps.push_back(step);
    for (const auto& [step, unused] : side->checkpoints) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  for (const int64_t step : steps) StepComparison(left, right, step, result).run();
  if (result.first) result.digest.reset();
  compare_settings(a, b, result);
  return result;
}

}  // namespace dz::eval
