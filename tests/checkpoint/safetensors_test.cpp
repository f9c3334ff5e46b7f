#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/scratch.h"

namespace dz::checkpoint {
namespace {

using Json = nlohmann::json;

const fs::path kGolden = fs::path(DZ_GOLDEN) / "safetensors";

Json golden(const char* name) { return Json::parse(read_file(kGolden / name)); }

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<std::byte> read_tensor(const TensorSource& source, const StoredTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes));
  source.read(tensor, bytes);
  return bytes;
}

std::string written(std::vector<RawTensor> tensors, const Metadata& metadata) {
  std::string text;
  write_safetensors(std::move(tensors), metadata,
                    [&](std::span<const std::byte> bytes) { text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  return text;
}

TEST(Safetensors, ReadsWhatTheLibraryWrote) {
  int files = 0;
  const Json good = golden("good.json");
  for (const auto& [name, expected] : good.items()) {
    const fs::path path = kGolden / "good" / (name + ".safetensors");
    const SafetensorsHeader header = read_safetensors_header(File::open_read(path));
    const TensorSource source = TensorSource::open(path);
    const Json& tensors = expected["tensors_in_file_order"];
    ASSERT_EQ(header.tensors.size(), tensors.size()) << name;
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(header.tensors[i].name, tensors[i]["name"].get<std::string>()) << name;
      EXPECT_EQ(header.tensors[i].dtype, tensors[i]["dtype"].get<std::string>()) << name;
      EXPECT_EQ(header.tensors[i].shape, tensors[i]["shape"].get<Shape>()) << name;
      EXPECT_EQ(read_tensor(source, source.at(header.tensors[i].name)), from_hex(tensors[i]["hex"])) << name;
    }
    EXPECT_EQ(header.metadata, expected["metadata"].is_null() ? Metadata{} : expected["metadata"].get<Metadata>()) << name;
    ++files;
  }
  EXPECT_EQ(files, 16);
}

TEST(Safetensors, WritesTheBytesOfTheLibrary) {
  const Json good = golden("good.json");
  for (const auto& [name, expected] : good.items()) {
    std::vector<std::vector<std::byte>> data;
    std::vector<RawTensor> tensors;
    for (const Json& tensor : expected["tensors_in_file_order"]) data.push_back(from_hex(tensor["hex"]));
    for (size_t i = data.size(); i-- > 0;) {  // the order in which they are handed over must not matter
      const Json& tensor = expected["tensors_in_file_order"][i];
      tensors.push_back({tensor["name"], tensor["dtype"], tensor["shape"].get<Shape>(), data[i]});
    }
    const Metadata metadata = expected["metadata"].is_null() ? Metadata{} : expected["metadata"].get<Metadata>();
    EXPECT_EQ(sha256_hex(written(tensors, metadata)), expected["sha256"].get<std::string>()) << name;
  }
}

TEST(Safetensors, RefusesEachBadFileWithItsPath) {
  int rejected = 0, accepted = 0;
  const Json bad = golden("bad.json");
  for (const auto& [name, expected] : bad.items()) {
    const fs::path path = kGolden / "bad" / (name + ".safetensors");
    const std::string verdict = expected["expect"];
    if (verdict == "reject") {
      const std::string message = message_of<CheckpointError>([&] { TensorSource::open(path); });
      EXPECT_NE(message.find(path.string()), std::string::npos) << name << ": " << message;
      ++rejected;
    } else if (verdict.starts_with("accept or reject")) {
      EXPECT_THROW(TensorSource::open(path), CheckpointError) << name << ": ours to choose, and we are strict";
    } else {
      EXPECT_NO_THROW({
        const TensorSource source = TensorSource::open(path);
        for (const StoredTensor& tensor : source.tensors()) read_tensor(source, tensor);
      }) << name;
      ++accepted;
    }
  }
  EXPECT_EQ(accepted, 5);
  EXPECT_GE(rejected, 55);
}

TEST(Safetensors, MessagesNameTheTensorAndWhatIsWrong) {
  const auto message = [](const char* name) {
    return message_of<CheckpointError>([&] { TensorSource::open(kGolden / "bad" / (std::string(name) + ".safetensors")); });
  };
  EXPECT_NE(message("hole").find("tensor \"b\": data_offsets"), std::string::npos) << message("hole");
  EXPECT_NE(message("shape_overflow").find("overflows"), std::string::npos);
  EXPECT_NE(message("unknown_dtype").find("unknown dtype \"F31\""), std::string::npos);
  EXPECT_NE(message("duplicate_name_same").find("\"a\" appears twice"), std::string::npos);
  EXPECT_NE(message("data_truncated_one_byte").find("bytes of data"), std::string::npos);
}

TEST(Safetensors, ShardedDirectoryEqualsTheSingleFile) {
  const TensorSource sharded = TensorSource::open(kGolden / "sharded");
  const TensorSource single = TensorSource::open(kGolden / "unsharded.safetensors");
  ASSERT_EQ(sharded.tensors().size(), single.tensors().size());
  ASSERT_GT(single.tensors().size(), 40u);
  for (const StoredTensor& tensor : single.tensors()) {
    const StoredTensor& other = sharded.at(tensor.name);
    EXPECT_EQ(other.shape, tensor.shape);
    EXPECT_EQ(read_tensor(sharded, other), read_tensor(single, tensor)) << tensor.name;
  }
  EXPECT_EQ(single.find("model.layers.0.nothing"), nullptr);
  EXPECT_NE(message_of<CheckpointError>([&] { single.at("nothing"); }).find("nothing"), std::string::npos);
}

// A copy of the sharded model whose index can be damaged.
class ShardedCopy : public testing::Test {
 protected:
  ShardedCopy() {
    fs::copy(kGolden / "sharded", directory_);
    fs::permissions(index_path_, fs::perms::owner_write, fs::perm_options::add);
    index_ = Json::parse(read_file(index_path_));
  }
  std::string message() {
    write_bytes(index_path_, index_.dump());
    return message_of<Error>([&] { TensorSource::open(directory_); });
  }
  Scratch scratch_;
  fs::path directory_ = scratch_ / "model";
  fs::path index_path_ = directory_ / "model.safetensors.index.json";
  Json index_;
};

TEST_F(ShardedCopy, LoadsUnchanged) { EXPECT_NO_THROW(TensorSource::open(directory_)); }

TEST_F(ShardedCopy, AFileThatLeavesTheDirectoryIsRefused) {
  index_["weight_map"]["model.norm.weight"] = "../model-00001-of-00004.safetensors";
  EXPECT_NE(message().find("the name of a file in the same directory"), std::string::npos);
}

TEST_F(ShardedCopy, AMissingShardIsNamed) {
  fs::remove(directory_ / "model-00002-of-00004.safetensors");
  EXPECT_NE(message().find("model-00002-of-00004.safetensors"), std::string::npos);
}

TEST_F(ShardedCopy, ATensorThatNoShardHoldsIsNamed) {
  index_["weight_map"]["lm_head.bias"] = "model-00001-of-00004.safetensors";
  EXPECT_NE(message().find("lm_head.bias"), std::string::npos);
}

TEST_F(ShardedCopy, ATensorThatTheIndexForgotIsNamed) {
  index_["weight_map"].erase("model.norm.weight");
  EXPECT_NE(message().find("model.norm.weight"), std::string::npos);
}

TEST_F(ShardedCopy, ATensorInAnotherShardIsNamed) {
  auto& file = index_["weight_map"]["model.norm.weight"];
  file = file == "model-00001-of-00004.safetensors" ? "model-00002-of-00004.safetensors" : "model-00001-of-00004.safetensors";
  EXPECT_NE(message().find("model.norm.weight"), std::string::npos);
}

TEST_F(ShardedCopy, AWrongTotalIsRefused) {
  index_["metadata"]["total_size"] = 1;
  EXPECT_NE(message().find("total_size"), std::string::npos);
}

TEST_F(ShardedCopy, DamagedIndexesAreRefused) {
  for (const char* text : {"", "[", "[]", "{}", R"({"weight_map":3})", R"({"weight_map":{"a":3}})", R"({"weight_map":{"a":""}})"}) {
    write_bytes(index_path_, text);
    EXPECT_THROW(TensorSource::open(directory_), CheckpointError) << text;
  }
}

TEST(Safetensors, NothingThereIsAnInputError) {
  const Scratch scratch;
  EXPECT_THROW(TensorSource::open(scratch / "missing.safetensors"), InputError);
  EXPECT_THROW(TensorSource::open(scratch.path()), InputError);
}

TEST(Safetensors, EveryHalfWidensExactly) {
  const Scratch scratch;
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  for (const char* dtype : {"F16", "BF16"}) {
    write_bytes(scratch / "h.safetensors", written({{"h", dtype, {256, 256}, std::as_bytes(std::span(halves))}}, {}));
    const TensorSource source = TensorSource::open(scratch / "h.safetensors");
    std::vector<float> values(65536);
    source.read_f32(source.at("h"), values);
    std::vector<float> part(300);
    source.read_f32_part(source.at("h"), 20000, part);
    EXPECT_EQ(std::memcmp(part.data(), values.data() + 20000, part.size() * sizeof(float)), 0);
    for (size_t i = 0; i < halves.size(); ++i) {
      const float expected = dtype[0] == 'B' ? std::bit_cast<float>(static_cast<uint32_t>(i << 16)) : _cvtsh_ss(halves[i]);
      // The instruction quiets a signalling NaN; a NaN is a NaN here.
      if (expected != expected) {
        EXPECT_NE(values[i], values[i]) << dtype << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(expected)) << dtype << " " << i;
      }
    }
  }
}

TEST(Safetensors, IntegersAreNotReadAsFloats) {
  const TensorSource source = TensorSource::open(kGolden / "good/mixed_dtypes.safetensors");
  std::vector<float> values(2);
  EXPECT_NE(message_of<CheckpointError>([&] { source.read_f32(source.at("i64"), values); }).find("I64"), std::string::npos);
}

TEST(Safetensors, WriterRefusesWhatNoReaderCouldTake) {
  const std::vector<std::byte> data(4);
  EXPECT_THROW(written({{"a", "F32", {1}, data}, {"a", "F32", {1}, data}}, {}), ConfigError);
  EXPECT_THROW(written({{"a", "F32", {1}, data}, {"a", "I32", {1}, data}}, {}), ConfigError);
  EXPECT_THROW(written({{"__metadata__", "F32", {1}, data}}, {}), ConfigError);
  EXPECT_THROW(written({{"\xff", "F32", {1}, data}}, {}), ConfigError);
}

TEST(Safetensors, WriterRefusesAHeaderThatNoReaderTakes) {
  const std::vector<std::byte> data(4);
  EXPECT_THROW(written({{std::string(100'000'000, 'n'), "F32", {1}, data}}, {}), ConfigError);
}

TEST(Safetensors, MetadataWithoutTensorsReadsBack) {
  const Scratch scratch;
  const Metadata metadata = {{"format", "pt"}, {"quote\" back\\ é \x01", "\n"}};
  write_bytes(scratch / "m.safetensors", written({}, metadata));
  EXPECT_EQ(TensorSource::open(scratch / "m.safetensors").metadata(), metadata);
}

}  // namespace
}  // namespace dz::checkpoint
