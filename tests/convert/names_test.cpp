#include "convert/names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "convert/models.h"

namespace dz::convert {
namespace {

const fs::path kGolden = fs::path(DZ_GOLDEN) / "conversion";

// OLMo-core 2.4.0's converter agrees with this map both ways.
TEST(Names, AreOlmoCoresByItsOwnMap) {
  const nlohmann::json golden = json_of(kGolden / "olmo_core_names.json");
  int64_t names = 0;
  for (const auto& [name, entry] : golden["map"].items()) {
    EXPECT_EQ(olmo_core_name(name), entry["olmo_core"].get<std::string>());
    ++names;
  }
  EXPECT_EQ(names, 47);
  for (const char* name : {"", "model.layers.", "model.layers.0", "model.layers.x.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.scale",
                           "model.layers.0.input_layernorm.weight", "blocks.0.attention.w_q.weight"})
    EXPECT_FALSE(olmo_core_name(name)) << name;
}

TEST(Names, StateDictOrderIsThatOfTransformers) {
  const nlohmann::json expected = json_of(kGolden / "sharded_expected.json")["save_order"];
  const model::ModelConfig config = model::from_hf_json(read_file(golden_model("base") / "config.json"), "base");
  std::vector<std::string> names;
  for (const model::ParameterSpec& spec : state_dict_order(config)) names.push_back(spec.name);
  EXPECT_EQ(names, expected.get<std::vector<std::string>>());
}

// Every tensor holds its own number, so that two swapped names show.
TEST(Names, EachTensorKeepsItsOwnConstantThroughBothNamings) {
  const Scratch scratch;
  const fs::path model = copy_model(scratch, "bias");
  auto tensors = tensors_of(model / "model.safetensors");
  uint16_t number = 0x3f80;
  for (auto& [name, tensor] : tensors) {
    ++number;
    for (size_t i = 0; i < tensor.bytes.size(); i += 2) std::memcpy(tensor.bytes.data() + i, &number, 2);
  }
  write_tensors(model / "model.safetensors", tensors);
  convert({.in = model, .out = scratch / "core", .to = Form::kHuggingFace, .names = Names::kOlmoCore}, {});
  const auto core = tensors_of(scratch / "core");
  ASSERT_EQ(core.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_EQ(core.at(*olmo_core_name(name)), tensor) << name;
  run(scratch / "core", scratch / "native");
  run(scratch / "native", scratch / "hf");
  EXPECT_EQ(tensors_of(scratch / "hf"), tensors);

  // Negative control: swapped norms are not noticed by shapes, only by their constants.
  auto swapped = core;
  std::swap(swapped["blocks.0.attention_norm.weight"], swapped["blocks.0.feed_forward_norm.weight"]);
  write_tensors(scratch / "core/model.safetensors", swapped);
  convert({.in = scratch / "core", .out = scratch / "wrong", .to = Form::kHuggingFace}, {});
  EXPECT_NE(tensors_of(scratch / "wrong"), tensors);
}

TEST(Names, OfALoneFileNeedAConfig) {
  const Scratch scratch;
  const fs::path model = copy_model(scratch, "olmo2");
  convert({.in = model, .out = scratch / "core", .to = Form::kHuggingFace, .names = Names::kOlmoCore}, {});
  // Some exports of OLMo-core put "model." in front.
  std::map<std::string, Tensor> prefixed;
  for (const auto& [name, tensor] : tensors_of(scratch / "core")) prefixed["model." + name] = tensor;
  write_tensors(scratch / "core.safetensors", prefixed);
  EXPECT_NE(message_of<InputError>([&] { run(scratch / "core.safetensors", scratch / "out"); }).find("--like"), std::string::npos);
  convert({.in = scratch / "core.safetensors", .out = scratch / "native", .like = model}, {});
  run(scratch / "native", scratch / "hf");
  EXPECT_EQ(tensors_of(scratch / "hf"), tensors_of(model));
}

}  // namespace
}  // namespace dz::convert
