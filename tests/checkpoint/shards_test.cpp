#include "checkpoint/shards.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/digest.h"
#include "checkpoint/scratch.h"

namespace dz::checkpoint {
namespace {

using Json = nlohmann::json;

const fs::path kGolden = DZ_GOLDEN;

// The model of safetensors/sharded in the order in which transformers 5.24.0 saved it.
std::vector<TensorSpec> saved_order() {
  const TensorSource source = TensorSource::open(kGolden / "safetensors/sharded");
  std::vector<TensorSpec> specs;
  const Json expected = Json::parse(read_file(kGolden / "conversion/sharded_expected.json"));
  for (const Json& name : expected["save_order"]) {
    const StoredTensor& stored = source.at(name.get<std::string>());
    specs.push_back({stored.name, stored.dtype, stored.shape});
    EXPECT_EQ(specs.back().bytes(), expected["tensor_bytes"][stored.name].get<int64_t>());
  }
  return specs;
}

TEST(Shards, IndexEqualsTheReferenceByteForByte) {
  EXPECT_EQ(index_json(plan_shards(saved_order(), 20000)), read_file(kGolden / "safetensors/sharded/model.safetensors.index.json"));
  // Negative control: another limit, or another order, is another index.
  EXPECT_NE(index_json(plan_shards(saved_order(), 21000)), read_file(kGolden / "safetensors/sharded/model.safetensors.index.json"));
  std::vector<TensorSpec> reversed = saved_order();
  std::ranges::reverse(reversed);
  EXPECT_NE(index_json(plan_shards(reversed, 20000)), read_file(kGolden / "safetensors/sharded/model.safetensors.index.json"));
}

TEST(Shards, FilesHaveTheBytesOfTheReference) {
  const TensorSource source = TensorSource::open(kGolden / "safetensors/sharded");
  for (const Shard& shard : plan_shards(saved_order(), 20000)) {
    const SafetensorsPlan plan = plan_safetensors(shard.tensors, kTorchFormat);
    std::string text = plan.head;
    for (const StoredTensor& tensor : plan.tensors) {
      std::string data(static_cast<size_t>(tensor.bytes), '\0');
      source.read(source.at(tensor.name), std::as_writable_bytes(std::span(data)));
      EXPECT_EQ(static_cast<int64_t>(text.size()), tensor.offset);
      text += data;
    }
    EXPECT_EQ(plan.file_bytes, static_cast<int64_t>(text.size()));
    EXPECT_EQ(text, read_file(kGolden / "safetensors/sharded" / shard.file)) << shard.file;
  }
}

TEST(Shards, ATensorLargerThanTheLimitHasAFileToItself) {
  const std::vector<Shard> shards = plan_shards({{"a", "F32", {10}}, {"b", "F32", {100}}, {"c", "F32", {10}}, {"d", "F32", {10}}}, 80);
  ASSERT_EQ(shards.size(), 3u);
  EXPECT_EQ(shards[1].tensors.size(), 1u);
  EXPECT_EQ(shards[2].tensors.size(), 2u);
  EXPECT_EQ(shards[2].file, "model-00003-of-00003.safetensors");
  EXPECT_EQ(plan_shards({{"a", "F32", {10}}}, 1)[0].file, "model.safetensors");
}

TEST(TensorSource, AFileThatShrinksWhileItIsOpenIsACheckpointError) {
  const Scratch scratch;
  fs::copy(kGolden / "safetensors/unsharded.safetensors", scratch / "m.safetensors");
  fs::permissions(scratch / "m.safetensors", fs::perms::owner_write, fs::perm_options::add);
  const TensorSource source = TensorSource::open(scratch / "m.safetensors");
  const StoredTensor& first = source.tensors().front();
  std::vector<std::byte> bytes(static_cast<size_t>(first.bytes));
  EXPECT_NO_THROW(source.read(first, bytes)) << "before it shrinks";
  fs::resize_file(scratch / "m.safetensors", static_cast<uintmax_t>(first.offset + first.bytes - 1));
  const std::string message = message_of<CheckpointError>([&] { source.read(first, bytes); });
  EXPECT_NE(message.find(first.name), std::string::npos) << message;
  EXPECT_NE(message.find("shrunk"), std::string::npos) << message;
  std::vector<float> values(static_cast<size_t>(first.elements()));
  EXPECT_THROW(source.read_f32(first, values), CheckpointError);
}

TEST(TensorDigester, PiecesOfAnyLengthGiveTheDigestOfTheWhole) {
  std::vector<float> values(3 * kDigestBlock + 17);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f;
  const Shape shape{static_cast<int64_t>(values.size())};
  ThreadPool pool(1);
  const TensorView view{"t", DType::kF32, shape, values.data()};
  const Digest128 whole = digest_tensors(std::span(&view, 1), pool).tensors[0].digest;
  for (const size_t piece : {size_t{1}, size_t{100}, size_t{4096}, size_t{5000}, values.size()}) {
    TensorDigester digester;
    for (size_t begin = 0; begin < values.size(); begin += piece)
      digester.add(std::span(values).subspan(begin, std::min(piece, values.size() - begin)));
    EXPECT_EQ(digester.finish("t", shape), whole) << piece;
  }
}

}  // namespace
}  // namespace dz::checkpoint
