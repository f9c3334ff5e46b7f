// Hugging Face -> native -> Hugging Face gives the same model: tensors byte for byte, config.json as JSON, side files.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "checkpoint/elements.h"
#include "checkpoint/store.h"
#include "convert/models.h"
#include "model/hf_config.h"
#include "model/load.h"

namespace dz::convert {
namespace {

const char* const kModels[] = {"base", "gqa", "head_dim", "yarn", "tied", "bias", "olmo2"};

TEST(RoundTrip, TensorsAndConfigOfEveryModelComeBack) {
  for (const char* name : kModels) {
    const Scratch scratch;
    const Report in = run(golden_model(name), scratch / "native");
    EXPECT_EQ(in.to, Form::kNative);
    const Report out = run(scratch / "native", scratch / "hf");
    EXPECT_EQ(out.to, Form::kHuggingFace);
    const auto before = tensors_of(golden_model(name) / "model.safetensors"), after = tensors_of(scratch / "hf");
    EXPECT_EQ(before, after) << name;
    EXPECT_EQ(in.tensors, static_cast<int64_t>(before.size()));
    EXPECT_EQ(json_of(golden_model(name) / "config.json"), json_of(scratch / "hf/config.json")) << name;
    // The file too: the library's own layout of the same tensors.
    EXPECT_EQ(read_file(golden_model(name) / "model.safetensors"), read_file(scratch / "hf/model.safetensors")) << name;
  }
}

TEST(RoundTrip, AChangedBitIsNoticed) {
  const Scratch scratch;
  run(golden_model("gqa"), scratch / "native");
  run(scratch / "native", scratch / "hf");
  flip_bit(scratch / "hf/model.safetensors", read_file(scratch / "hf/model.safetensors").size() - 1);
  EXPECT_NE(tensors_of(golden_model("gqa") / "model.safetensors"), tensors_of(scratch / "hf"));
}

TEST(RoundTrip, OfShardsWithMixedTypesSideFilesAndUnknownKeys) {
  const Scratch scratch;
  const fs::path model = copy_model(scratch, "base");
  auto tensors = tensors_of(model / "model.safetensors");
  tensors["model.norm.weight"].bytes[1] = 0x40;                                       // not exact in fewer bits
  for (const char* name : {"lm_head.weight", "model.layers.1.mlp.up_proj.weight"}) {  // some bf16, one f16
    Tensor& tensor = tensors[name];
    std::vector<float> values(tensor.bytes.size() / 4);
    checkpoint::widen("F32", std::as_bytes(std::span(tensor.bytes)), values);
    tensor.dtype = std::string(name) == "lm_head.weight" ? "BF16" : "F16";
    tensor.bytes.resize(values.size() * 2);
    checkpoint::narrow(values, tensor.dtype, std::as_writable_bytes(std::span(tensor.bytes)));
  }
  write_tensors(model / "model.safetensors", tensors);
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(read_file(model / "config.json"));
  config["of_another_program"] = {{"a", 1}, {"b", {1.5, nullptr, "x"}}};
  write_bytes(model / "config.json", config.dump());
  const std::map<std::string, std::string> side = {{"tokenizer.json", "{}"},
                                                   {"generation_config.json", "{\"eos_token_id\": [1, 2]}\n"},
                                                   {"chat_template.jinja", "{{ messages }}"},
                                                   {"LICENSE", std::string("bytes \0 \xff", 9)}};
  for (const auto& [name, text] : side) write_bytes(model / name, text);
  write_bytes(model / "pytorch_model.bin", "weights");
  write_bytes(model / ".hidden", "x");
  fs::create_directories(model / "original");
  write_bytes(model / "original/secret.txt", "x");

  run(model, scratch / "native");
  const Report out = convert({.in = scratch / "native", .out = scratch / "hf", .max_shard_bytes = 60000}, {});
  EXPECT_GT(out.files, 3);
  EXPECT_EQ(out.out_types, (std::vector<std::string>{"BF16", "F16", "F32"}));
  EXPECT_EQ(tensors_of(scratch / "hf"), tensors);
  EXPECT_EQ(read_file(scratch / "hf/config.json"), config.dump()) << "not even reformatted";
  for (const auto& [name, text] : side) EXPECT_EQ(read_file(scratch / "hf" / name), text) << name;
  for (const char* name : {"pytorch_model.bin", ".hidden", "original", "model.safetensors", "hugging_face.json"})
    EXPECT_FALSE(fs::exists(scratch / "hf" / name)) << name;
  // And once more from the shards.
  run(scratch / "hf", scratch / "again");
  EXPECT_EQ(read_file(scratch / "again/manifest.json"), read_file(scratch / "native/manifest.json"));
}

// transformers 4.57.3 and 5.24.0 both read A and B; C, D and the old key `type` are read wrongly or not at all by one of them.
TEST(RoundTrip, SpellingsThatAllReadersTakeStayAndTheOthersBecomeThem) {
  const fs::path configs = golden_model("configs");
  const auto portable = [&](const std::string& name) {
    const fs::path path = configs / name / "config.json";
    return model::with_portable_rope(read_file(path), path.string());
  };
  for (const char* name : {"A_default", "A_torch_dtype", "A_without_layer_types", "A_theta_10000", "A_no_scaling_key_int_float", "B_yarn",
                           "B_yarn_no_attention_factor", "B_yarn_truncate_false", "B_yarn_theta_10000"})
    EXPECT_EQ(portable(name), read_file(configs / name / "config.json")) << name;
  const auto rope = [&](const std::string& name) {
    const nlohmann::json json = nlohmann::json::parse(portable(name));
    EXPECT_FALSE(json.contains("rope_parameters")) << name;
    return nlohmann::json{json.at("rope_theta"), json.at("rope_scaling")};
  };
  for (const char* name : {"C_flat_yarn", "D_nested_yarn", "B_yarn_legacy_type_key"}) EXPECT_EQ(rope(name), rope("B_yarn")) << name;
  for (const char* name : {"C_flat_default", "D_nested_default"}) EXPECT_EQ(rope(name), rope("A_default")) << name;
}

TEST(Native, HoldsZeroMomentsAndLoadsAsACheckpoint) {
  const Scratch scratch;
  const Report report = run(golden_model("gqa"), scratch / "native");
  EXPECT_NE(std::ranges::find(report.notes, "moments 0, step 0: Hugging Face files have none"), report.notes.end());
  const checkpoint::Checkpoint checkpoint = checkpoint::open_checkpoint(scratch / "native");
  EXPECT_NO_THROW(checkpoint::verify_files(checkpoint));
  EXPECT_EQ(checkpoint.step, 0);
  const auto moments = tensors_of(scratch / "native/moments.safetensors");
  const auto weights = tensors_of(golden_model("gqa") / "model.safetensors");
  EXPECT_EQ(moments.size(), 2 * weights.size());
  for (const auto& [name, tensor] : moments) {
    EXPECT_EQ(tensor.dtype, "F32");
    EXPECT_EQ(tensor.bytes.find_first_not_of('\0'), std::string::npos) << name;
  }
  const model::LoadedModel a = model::load_model(golden_model("gqa")), b = model::load_model(scratch / "native");
  EXPECT_TRUE(std::ranges::equal(a.parameters.arena(), b.parameters.arena()));
  EXPECT_EQ(a.config, b.config);
  // The per-tensor digests are those of the memory.
  ThreadPool pool(1);
  EXPECT_EQ(checkpoint::digest_tensors(b.parameters.views(), pool), checkpoint::read_digests(checkpoint).parameters);
}

TEST(Dtype, Bf16IsTheRoundingOfTheReferenceAndSaysSoInTheConfig) {
  const Scratch scratch;
  const fs::path model = copy_model(scratch, "base");
  const nlohmann::json golden = json_of(fs::path(DZ_GOLDEN) / "numerics/f32_to_bf16.json");
  auto tensors = tensors_of(model / "model.safetensors");
  std::string& bytes = tensors["model.embed_tokens.weight"].bytes;
  for (size_t i = 0; i < golden["f32"].size(); ++i) {
    const auto bits = static_cast<uint32_t>(std::stoul(golden["f32"][i].get<std::string>(), nullptr, 16));
    std::memcpy(bytes.data() + i * 4, &bits, 4);
  }
  write_tensors(model / "model.safetensors", tensors);
  const Report report = convert({.in = model, .out = scratch / "bf16", .to = Form::kHuggingFace, .dtype = "BF16"}, {});
  EXPECT_EQ(report.out_types, std::vector<std::string>{"BF16"});
  const std::string rounded = tensors_of(scratch / "bf16")["model.embed_tokens.weight"].bytes;
  for (size_t i = 0; i < golden["f32"].size(); ++i) {
    uint16_t found;
    std::memcpy(&found, rounded.data() + i * 2, 2);
    const auto f32 = static_cast<uint32_t>(std::stoul(golden["f32"][i].get<std::string>(), nullptr, 16));
    const auto bf16 = static_cast<uint16_t>(std::stoul(golden["bf16"][i].get<std::string>(), nullptr, 16));
    if ((f32 & 0x7fffffffu) > 0x7f800000u) {
      EXPECT_GT(found & 0x7fff, 0x7f80) << "a NaN stays one";
    } else {
      EXPECT_EQ(found, bf16) << golden["f32"][i];
    }
  }
  nlohmann::json config = json_of(scratch / "bf16/config.json"), before = json_of(model / "config.json");
  EXPECT_EQ(config[before.contains("torch_dtype") ? "torch_dtype" : "dtype"], "bfloat16");
  for (nlohmann::json* json : {&config, &before})
    for (const char* key : {"dtype", "torch_dtype"}) json->erase(key);
  EXPECT_EQ(config, before) << "nothing else changes";
}

TEST(Dtype, NonFiniteWeightsGoBetweenFilesButNotIntoACheckpoint) {
  const Scratch scratch;
  const fs::path model = copy_model(scratch, "gqa");
  auto tensors = tensors_of(model / "model.safetensors");
  tensors["model.norm.weight"].bytes[0] = '\x01';
  tensors["model.norm.weight"].bytes[1] = '\x7f';
  tensors["model.norm.weight"].bytes[2] = '\x80';
  tensors["model.norm.weight"].bytes[3] = '\x7f';
  write_tensors(model / "model.safetensors", tensors);
  convert({.in = model, .out = scratch / "hf", .to = Form::kHuggingFace}, {});
  EXPECT_EQ(tensors_of(scratch / "hf"), tensors);
  const std::string message = message_of<DataError>([&] { run(model, scratch / "native"); });
  EXPECT_NE(message.find("model.norm.weight, element 1"), std::string::npos) << message;
  EXPECT_FALSE(fs::exists(scratch / "native"));
}

}  // namespace
}  // namespace dz::convert
