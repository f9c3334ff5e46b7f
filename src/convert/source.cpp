#include "convert/source.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "checkpoint/elements.h"
#include "checkpoint/manifest.h"
#include "convert/side_files.h"
#include "model/hf_config.h"

namespace dz::convert {
namespace {

constexpr const char* kConfig = "config.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string read_small_file(const fs::path& path) {
  if (const int64_t bytes = File::open_read(path).size(); bytes > kMaxSideFile) {
    throw DataError(Complaint{.where = path.string(), .found = std::to_string(bytes) + " bytes", .expected = "a small file", .hint = ""});
  }
  return read_file(path);
}

// The names of the tensors in the files: as they are, or OLMo-core's, which some of its exports begin with "model.".
struct Naming {
  Names names = Names::kHuggingFace;
  std::string prefix;
  std::string stored(const std::string& name) const { return names == Names::kHuggingFace ? name : prefix + olmo_core_name(name).value_or(name); }
};

Naming naming_of(const checkpoint::TensorSource& tensors) {
  if (tensors.find("model.embed_tokens.weight") != nullptr) return {};
  for (const char* prefix : {"", "model."})
    if (tensors.find(std::string(prefix) + "embeddings.weight") != nullptr) return {Names::kOlmoCore, prefix};
  return {};
}

const checkpoint::StoredTensor& find_tensor(const checkpoint::TensorSource& tensors, const model::ParameterSpec& spec, const std::string& name) {
  const checkpoint::StoredTensor* stored = tensors.find(name);
  if (stored == nullptr) {
    throw DataError(Complaint{tensors.path().string() + ": " + name, "no such tensor", shape_text(spec.shape),
                              "the weights are of another model than config.json says, or incomplete"});
  }
  const std::string where = tensors.path_of(*stored).string() + ": " + name;
  if (stored->shape != spec.shape)
    throw DataError(Complaint{where, "shape " + shape_text(stored->shape), shape_text(spec.shape), "config.json and the weights disagree"});
  if (!checkpoint::is_float_type(stored->dtype)) throw DataError(Complaint{where, "type " + stored->dtype, "F32, BF16 or F16", ""});
  return *stored;
}

bool equal_data(const checkpoint::TensorSource& tensors, const checkpoint::StoredTensor& a, const checkpoint::StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  std::vector<std::byte> left(static_cast<size_t>(std::min(a.bytes, kPiece))), right = left;
  for (int64_t begin = 0; begin < a.bytes; begin += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, a.bytes - begin));
    tensors.read_part(a, begin, std::span(left).first(count));
    tensors.read_part(b, begin, std::span(right).first(count));
    if (!std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count), right.begin())) return false;
  }
  return true;
}

// A tensor that nobody takes is a sign that config.json describes another model; two kinds are known to be left over.
void check_left_over(const Source& source, const Naming& naming, std::vector<std::string>& notes) {
  std::set<std::string_view> taken;
  for (const SourceTensor& tensor : source.parameters) taken.insert(tensor.stored->name);
  const checkpoint::TensorSource& tensors = source.tensors;
  for (const checkpoint::StoredTensor& stored : tensors.tensors()) {
    if (taken.contains(stored.name)) continue;
    if (stored.name.ends_with("rotary_emb.inv_freq")) {
      notes.push_back(stored.name + " is left out: a table that every reader computes");
      continue;
    }
    const std::string where = tensors.path_of(stored).string() + ": " + stored.name;
    if (source.config.tie_word_embeddings && stored.name == naming.stored("lm_head.weight")) {
      if (!equal_data(tensors, stored, tensors.at(naming.stored("model.embed_tokens.weight"))))
        throw DataError(Complaint{where, "another tensor than the embedding", "the same, as tie_word_embeddings says", "set it to false"});
      notes.push_back(stored.name + " is left out: it is the embedding (tie_word_embeddings)");
      continue;
    }
    throw DataError(Complaint{where, "a tensor that this model does not have", "", "config.json and the weights disagree"});
  }
}

void take_parameters(Source& source, const std::map<std::string, std::string>& dtypes) {
  const Naming naming = naming_of(source.tensors);
  for (const model::ParameterSpec& spec : state_dict_order(source.config)) {
    const checkpoint::StoredTensor& stored = find_tensor(source.tensors, spec, naming.stored(spec.name));
    const auto kept = dtypes.find(spec.name);
    source.parameters.push_back({spec, &stored, kept != dtypes.end() ? kept->second : stored.dtype});
  }
  check_left_over(source, naming, source.notes);
}

void take_side_files(Source& source, const fs::path& directory) {
  const SideFiles found = find_side_files(directory);
  for (const std::string& name : found.names) source.side_files.push_back({name, [path = directory / name] { return read_small_file(path); }});
  source.notes.insert(source.notes.end(), found.notes.begin(), found.notes.end());
}

void take_config(Source& source, const fs::path& path, std::string text) {
  source.config = model::from_hf_json(text, path.string());
  source.config_text = model::with_portable_rope(text, path.string());
}

void open_hugging_face(Source& source, const fs::path& in) {
  source.path = in;
  source.tensors = checkpoint::TensorSource::open(in);
  if (!is_there(in / kConfig)) return;
  take_config(source, in / kConfig, read_small_file(in / kConfig));
  take_side_files(source, in);
}

Origin open_native(Source& source, checkpoint::Checkpoint checkpoint) {
  source.form = Form::kNative;
  source.path = checkpoint.path;
  source.tensors = checkpoint::TensorSource::open(checkpoint.path / checkpoint::kModelName);
  const std::string config = checkpoint::read_side_file(checkpoint, kConfig);
  Origin origin;
  if (checkpoint.has(kOriginName)) {
    origin = parse_origin(checkpoint::read_side_file(checkpoint, kOriginName), (checkpoint.path / kOriginName).string());
  } else if (checkpoint.has("tokenizer.json")) {
    origin.side_files = {"tokenizer.json"};
  }
  take_config(source, checkpoint.path / kConfig, origin.config.empty() ? config : origin.config);
  for (const std::string& name : origin.side_files)
    source.side_files.push_back({name, [checkpoint, name] { return checkpoint::read_side_file(checkpoint, name); }});
  source.parameter_digests = checkpoint::read_digests(checkpoint).parameters.tensors;
  source.checkpoint = std::move(checkpoint);
  return origin;
}

// What the file says about the computation, without what it only tells about tokens and lengths.
model::ModelConfig architecture(model::ModelConfig config) {
  config.max_position_embeddings = -1;
  config.eos_token_ids.clear();
  config.bos_token_id = config.pad_token_id = std::nullopt;
  return config;
}

// The dtypes of the weights in `like`, where it has any.
std::map<std::string, std::string> take_like(Source& source, const fs::path& like, bool has_config) {
  const fs::path path = like / kConfig;
  const model::ModelConfig own = source.config;
  take_config(source, path, read_small_file(path));
  if (has_config && architecture(own) != architecture(source.config))
    throw ConfigError(Complaint{path.string(), "another model than " + source.path.string(), "the same shape, layers and rotary embedding",
                                "--like takes a directory of the same model"});
  source.side_files.clear();
  source.notes.clear();
  take_side_files(source, like);
  std::map<std::string, std::string> dtypes;
  if (!is_there(like / "model.safetensors") && !is_there(like / "model.safetensors.index.json")) return dtypes;
  const checkpoint::TensorSource weights = checkpoint::TensorSource::open(like);
  for (const checkpoint::StoredTensor& tensor : weights.tensors())
    if (checkpoint::is_float_type(tensor.dtype)) dtypes[tensor.name] = tensor.dtype;
  return dtypes;
}

checkpoint::Checkpoint newest_of_run(const fs::path& run) {
  checkpoint::Newest newest = checkpoint::find_newest(run / "checkpoints");
  if (newest.checkpoint) return std::move(*newest.checkpoint);
  std::string message = run.string() + ": a run without a complete checkpoint";
  for (const checkpoint::Skipped& skipped : newest.skipped) message += "\n  " + skipped.name + ": " + skipped.why;
  throw InputError(message);
}

}  // namespace

Source Source::open(const fs::path& in, const fs::path& like) {
  if (!is_there(in))
    throw InputError(
        Complaint{in.string(), "no such file or directory", "a Hugging Face model, a native checkpoint, a run or a .safetensors file", ""});
  Source source;
  std::map<std::string, std::string> dtypes;
  bool has_config = true;
  if (is_there(in / checkpoint::kManifestName) || is_there(in / checkpoint::kTrainerName)) {
    dtypes = open_native(source, checkpoint::open_checkpoint(in)).dtypes;
  } else if (is_there(in / "checkpoints") && !is_there(in / kConfig)) {
    dtypes = open_native(source, newest_of_run(in)).dtypes;
  } else {
    open_hugging_face(source, in);
    has_config = is_there(in / kConfig);
  }
  if (!like.empty()) {
    for (auto& [name, dtype] : take_like(source, like, has_config)) dtypes[name] = dtype;
  } else if (!has_config) {
    throw InputError(Complaint{in.string(), "no config.json beside the weights", "it", "give a directory that has it: --like DIR"});
  }
  take_parameters(source, dtypes);
  return source;
}

const checkpoint::NamedDigest& find_digest(const std::vector<checkpoint::NamedDigest>& digests, const std::string& name, const fs::path& where) {
  const auto found = std::ranges::lower_bound(digests, name, {}, &checkpoint::NamedDigest::name);
  if (found == digests.end() || found->name != name) throw CheckpointError(where.string() + ": digests.json has no digest of " + name);
  return *found;
}

void read_elements(const checkpoint::TensorSource& tensors, const checkpoint::StoredTensor& stored, const checkpoint::NamedDigest* expected,
                   const UsePiece& use) {
  const int64_t elements = stored.elements(), width = stored.dtype == "F32" ? 4 : 2;
  const auto most = static_cast<size_t>(std::min(kPiece, elements));
  std::vector<std::byte> bytes(most * static_cast<size_t>(width));
  std::vector<float> values(most);
  checkpoint::TensorDigester digester;
  for (int64_t begin = 0; begin < elements; begin += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, elements - begin));
    const std::span<std::byte> piece = std::span(bytes).first(count * static_cast<size_t>(width));
    tensors.read_part(stored, begin * width, piece);
    checkpoint::widen(stored.dtype, piece, std::span(values).first(count));
    if (expected != nullptr) digester.add(std::span(values).first(count));
    use(std::span<const float>(values).first(count));
  }
  if (expected == nullptr) return;
  if (const Digest128 found = digester.finish(expected->name, stored.shape); found != expected->digest)
    throw CheckpointError(Complaint{.where = tensors.path_of(stored).string() + ": " + stored.name,
                                    .found = "digest " + found.hex(),
                                    .expected = expected->digest.hex() + " as digests.json says",
                                    .hint = "the checkpoint is damaged"});
}

void Source::read(const SourceTensor& tensor, const UsePiece& use) const {
  read_elements(tensors, *tensor.stored, checkpoint ? &find_digest(parameter_digests, tensor.spec.name, path) : nullptr, use);
}

}  // namespace dz::convert
