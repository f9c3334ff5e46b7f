#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/digest.h"
#include "checkpoint/hashed_file.h"
#include "checkpoint/manifest.h"
#include "convert/output.h"
#include "convert/side_files.h"
#include "model/hf_config.h"
#include "train/step.h"

namespace dz::convert {
namespace {

using Json = nlohmann::ordered_json;

// Files of a checkpoint that mean something to this program; a side file of that name cannot stand beside them.
constexpr std::array<std::string_view, 10> kOurNames = {"config.json",
                                                        checkpoint::kManifestName,
                                                        checkpoint::kModelName,
                                                        checkpoint::kMomentsName,
                                                        checkpoint::kTrainerName,
                                                        checkpoint::kDigestsName,
                                                        "recipe.yaml",
                                                        "identity.json",
                                                        "parent.json",
                                                        "data.json"};

void refuse_non_finite(const SourceTensor& tensor, int64_t begin, std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if ((std::bit_cast<uint32_t>(values[i]) & 0x7f800000u) != 0x7f800000u) continue;
    throw DataError(Complaint{.where = fmt::format("{}, element {}", tensor.spec.name, begin + static_cast<int64_t>(i)),
                              .found = fmt::format("{}", values[i]),
                              .expected = "finite numbers in a native checkpoint",
                              .hint = "--to hf converts such a model as it is"});
  }
}

checkpoint::ManifestFile write_weights(const Source& source, const fs::path& directory, Meter& meter, checkpoint::TensorsDigest& digests) {
  std::vector<checkpoint::TensorSpec> specs;
  std::map<std::string_view, const SourceTensor*> by_name;
  for (const SourceTensor& tensor : source.parameters) {
    specs.push_back({tensor.spec.name, "F32", tensor.spec.shape});
    by_name[tensor.spec.name] = &tensor;
  }
  const checkpoint::SafetensorsPlan plan = checkpoint::plan_safetensors(std::move(specs), checkpoint::kTorchFormat);
  checkpoint::HashedFile file(directory, checkpoint::kModelName);
  file.write(std::as_bytes(std::span(plan.head)));
  for (const checkpoint::StoredTensor& stored : plan.tensors) {
    const SourceTensor& tensor = *by_name.at(stored.name);
    checkpoint::TensorDigester digester;
    int64_t begin = 0;
    source.read(tensor, [&](std::span<const float> values) {
      refuse_non_finite(tensor, begin, values);
      begin += static_cast<int64_t>(values.size());
      digester.add(values);
      file.write(std::as_bytes(values));
      meter.add(static_cast<int64_t>(values.size_bytes()));
    });
    digests.tensors.push_back({stored.name, digester.finish(stored.name, stored.shape)});
  }
  return file.finish();
}

Digest128 zeros_digest(const std::string& name, const Shape& shape) {
  const std::vector<float> zeros(static_cast<size_t>(checkpoint::kDigestBlock));
  const int64_t elements = element_count(shape), full = elements / checkpoint::kDigestBlock, rest = elements % checkpoint::kDigestBlock;
  std::vector<Digest128> blocks(static_cast<size_t>(full), checkpoint::block_digest(zeros));
  if (rest > 0) blocks.push_back(checkpoint::block_digest(std::span(zeros).first(static_cast<size_t>(rest))));
  return checkpoint::tensor_digest(name, shape, blocks);
}

// All zeros behind the header: a hole in the file, which takes no room.
checkpoint::ManifestFile write_zero_moments(const Source& source, const fs::path& directory, Meter& meter, checkpoint::TensorsDigest& digests) {
  std::vector<checkpoint::TensorSpec> specs;
  for (const SourceTensor& tensor : source.parameters)
    for (const std::string& name : {checkpoint::exp_avg_name(tensor.spec.name), checkpoint::exp_avg_sq_name(tensor.spec.name)}) {
      specs.push_back({name, "F32", tensor.spec.shape});
      digests.tensors.push_back({name, zeros_digest(name, tensor.spec.shape)});
    }
  const checkpoint::SafetensorsPlan plan = checkpoint::plan_safetensors(std::move(specs), checkpoint::kTorchFormat);
  checkpoint::HashedFile file(directory, checkpoint::kMomentsName);
  file.write(std::as_bytes(std::span(plan.head)));
  const int64_t bytes = plan.file_bytes - static_cast<int64_t>(plan.head.size());
  file.write_zeros_to_the_end(bytes);
  meter.add(bytes);
  return file.finish();
}

void finish(checkpoint::TensorsDigest& digests) {
  std::ranges::sort(digests.tensors, {}, &checkpoint::NamedDigest::name);
  digests.total = checkpoint::combined_digest(digests.tensors);
}

// The native copy of config.json: all of its keys, and the type of these weights.
std::string native_config(const Source& source) {
  Json json = Json::parse(source.config_text);
  for (const char* key : {"dtype", "torch_dtype"})
    if (json.contains(key)) json[key] = "float32";
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::map<std::string, std::string> small_files(const Source& source, Report& report) {
  std::map<std::string, std::string> files;
  Origin origin{.config = source.config_text, .dtypes = {}, .side_files = {}};
  for (const SourceTensor& tensor : source.parameters) origin.dtypes[tensor.spec.name] = tensor.kept_dtype;
  for (const SideFile& file : source.side_files) {
    if (file.name == kOriginName || std::ranges::find(kOurNames, file.name) != kOurNames.end()) {
      report.notes.push_back(file.name + " is left out: a native checkpoint has a file of that name");
      continue;
    }
    files[file.name] = file.read();
    origin.side_files.push_back(file.name);
  }
  files["config.json"] = native_config(source);
  files[kOriginName] = to_json(origin);
  return files;
}

void write_manifest(const fs::path& directory, checkpoint::Checkpoint& checkpoint) {
  std::ranges::sort(checkpoint.files, {}, &checkpoint::ManifestFile::name);
  checkpoint::write_text(directory, checkpoint::kManifestName, checkpoint::manifest_text(checkpoint));
}

void write_new(const Source& source, const fs::path& directory, Meter& meter, Report& report) {
  checkpoint::Checkpoint checkpoint;
  checkpoint::StateDigests digests;
  checkpoint.files.push_back(write_weights(source, directory, meter, digests.parameters));
  checkpoint.files.push_back(write_zero_moments(source, directory, meter, digests.moments));
  finish(digests.parameters);
  finish(digests.moments);
  const std::string trainer = train::fresh_trainer_json();
  digests.trainer = checkpoint::digest_text(trainer);
  checkpoint.parameters = digests.parameters.total;
  checkpoint.moments = digests.moments.total;
  checkpoint.trainer = digests.trainer;
  checkpoint.files.push_back(checkpoint::write_text(directory, checkpoint::kTrainerName, trainer));
  checkpoint.files.push_back(checkpoint::write_text(directory, checkpoint::kDigestsName, checkpoint::digests_text(digests)));
  for (const auto& [name, text] : small_files(source, report)) checkpoint.files.push_back(checkpoint::write_text(directory, name, text));
  write_manifest(directory, checkpoint);
  report.notes.push_back("moments 0, step 0: Hugging Face files have none");
}

void write_copy(const Source& source, const fs::path& directory, Meter& meter) {
  checkpoint::Checkpoint copy = *source.checkpoint;
  for (const checkpoint::ManifestFile& entry : source.checkpoint->files) {
    checkpoint::HashedFile file(directory, entry.name);
    checkpoint::read_verified(*source.checkpoint, entry, [&](int64_t, std::span<const std::byte> bytes) {
      file.write(bytes);
      if (entry.name == checkpoint::kModelName || entry.name == checkpoint::kMomentsName) meter.add(static_cast<int64_t>(bytes.size()));
    });
    file.finish();
  }
  write_manifest(directory, copy);
}

// Reads as a resume does: every byte against the manifest, the names and shapes of the weights against the model, digests against each other.
void check_written(const Source& source, const fs::path& directory, int64_t step, Meter& meter) {
  const checkpoint::Checkpoint written = checkpoint::open_checkpoint(directory);
  for (const checkpoint::ManifestFile& file : written.files) {
    const bool counts = file.name == checkpoint::kModelName || file.name == checkpoint::kMomentsName;
    checkpoint::read_verified(written, file, [&](int64_t, std::span<const std::byte> bytes) {
      if (counts) meter.add(static_cast<int64_t>(bytes.size()));
    });
  }
  const checkpoint::StateDigests digests = checkpoint::read_digests(written);
  const checkpoint::TensorSource weights = checkpoint::TensorSource::open(directory / checkpoint::kModelName);
  bool same =
      written.step == step && weights.tensors().size() == source.parameters.size() && digests.parameters.tensors.size() == weights.tensors().size();
  for (const SourceTensor& tensor : source.parameters) {
    const checkpoint::StoredTensor* stored = weights.find(tensor.spec.name);
    same = same && stored != nullptr && stored->dtype == "F32" && stored->shape == tensor.spec.shape;
  }
  if (!same) throw IoError(directory.string() + ": what was read back is not the model that was written; nothing was kept");
}

}  // namespace

int64_t native_bytes(const Source& source) {
  int64_t elements = 0;
  for (const SourceTensor& tensor : source.parameters) elements += element_count(tensor.spec.shape);
  return elements * 12;  // weights and two moments
}

void write_native(const Source& source, const fs::path& directory, Meter& meter, Report& report) {
  if (source.checkpoint) {
    write_copy(source, directory, meter);
  } else {
    write_new(source, directory, meter, report);
  }
  check_written(source, directory, report.step, meter);
  report.files = 1;
  report.out_types = {"F32"};
}

}  // namespace dz::convert
