#include "checkpoint/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace dz::checkpoint {
namespace {

// Tensors with the bits of tools/reference/state_digest.py.
struct State {
  std::vector<std::vector<float>> data;
  std::vector<TensorView> views;
  void add(const std::string& name, const Shape& shape, uint64_t seed) {
    std::vector<float>& values = data.emplace_back(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 2654435761u + seed));
    views.push_back({name, DType::kF32, shape, values.data()});
  }
};

State small_state() {
  State state;
  state.data.reserve(2);
  state.add("b", {3, 3000}, 0x3f000000);
  state.add("a", {3, 3000}, 0x3e000000);
  for (auto& values : state.data)
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.25f - 7.0f;
  for (float& value : state.data[1]) value += 0.5f;
  return state;
}

TEST(Digest, EqualsTheReferenceForAnyThreadCount) {
  const auto cases = nlohmann::json::parse(read_file(fs::path(DZ_GOLDEN) / "digest/state_digest.json"));
  ASSERT_EQ(cases.size(), 8u);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const auto& expected : cases) {
      State state;
      state.data.reserve(expected["tensors"].size());
      for (const auto& tensor : expected["tensors"]) state.add(tensor["name"], tensor["shape"].get<Shape>(), tensor["seed"]);
      const TensorsDigest digest = digest_tensors(state.views, pool);
      EXPECT_EQ(digest.total.hex(), expected["total"].get<std::string>()) << expected.dump();
      ASSERT_EQ(digest.tensors.size(), expected["tensors"].size());
      for (const auto& tensor : expected["tensors"]) {
        const auto found = std::find_if(digest.tensors.begin(), digest.tensors.end(),
                                        [&](const NamedDigest& named) { return named.name == tensor["name"].get<std::string>(); });
        ASSERT_NE(found, digest.tensors.end());
        EXPECT_EQ(found->digest.hex(), tensor["digest"].get<std::string>()) << found->name;
      }
    }
  }
}

TEST(Digest, OneUlpInOneWeightChangesItAndNamesTheTensor) {
  ThreadPool pool(1);
  State state = small_state();
  const TensorsDigest before = digest_tensors(state.views, pool);
  float& value = state.data[0][8999];
  value = std::nextafter(value, 1e9f);
  const TensorsDigest after = digest_tensors(state.views, pool);
  EXPECT_NE(before.total, after.total);
  EXPECT_EQ(before.tensors[0], after.tensors[0]);
  EXPECT_NE(before.tensors[1], after.tensors[1]);
  EXPECT_EQ(after.tensors[1].name, "b");
}

TEST(Digest, SwappedTensorsNamesAndShapesChangeIt) {
  ThreadPool pool(1);
  State state = small_state();
  const Digest128 before = digest_tensors(state.views, pool).total;
  std::swap(state.views[0].data, state.views[1].data);
  EXPECT_NE(digest_tensors(state.views, pool).total, before);
  std::swap(state.views[0].data, state.views[1].data);
  EXPECT_EQ(digest_tensors(state.views, pool).total, before);
  std::swap(state.views[0], state.views[1]);
  EXPECT_EQ(digest_tensors(state.views, pool).total, before) << "the order of the list means nothing";
  state.views[0].shape = {3000, 3};
  EXPECT_NE(digest_tensors(state.views, pool).total, before);
  state.views[0].shape = {3, 3000};
  state.views[0].name = "a2";
  EXPECT_NE(digest_tensors(state.views, pool).total, before);
}

TEST(Digest, ZeroHasASignButANanHasNoPayload) {
  const std::vector<float> plus = {1.0f, 0.0f}, minus = {1.0f, -0.0f};
  EXPECT_NE(block_digest(plus), block_digest(minus));
  const std::vector<float> quiet = {1.0f, std::bit_cast<float>(0x7fc00000u)};
  for (const uint32_t bits : {0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    const std::vector<float> other = {1.0f, std::bit_cast<float>(bits)};
    EXPECT_EQ(block_digest(quiet), block_digest(other));
  }
  const std::vector<float> infinite = {1.0f, std::numeric_limits<float>::infinity()};
  EXPECT_NE(block_digest(quiet), block_digest(infinite));
}

TEST(Digest, BlocksFromAnyShardMakeTheSameTensor) {
  ThreadPool pool(1);
  const State state = small_state();
  const std::span<const float> values(state.data[0]);
  std::vector<Digest128> blocks;
  for (size_t begin = 0; begin < values.size(); begin += 4096)
    blocks.push_back(block_digest(values.subspan(begin, std::min<size_t>(4096, values.size() - begin))));
  EXPECT_EQ(tensor_digest("b", {3, 3000}, blocks), digest_tensors(state.views, pool).tensors[1].digest);
  std::swap(blocks[0], blocks[1]);
  EXPECT_NE(tensor_digest("b", {3, 3000}, blocks), digest_tensors(state.views, pool).tensors[1].digest);
}

TEST(Digest, FindsTheFirstValueThatIsNotFinite) {
  ThreadPool pool(2);
  State state = small_state();
  EXPECT_FALSE(find_non_finite(state.views, pool));
  state.data[1][7000] = -std::numeric_limits<float>::infinity();
  state.data[1][8000] = std::bit_cast<float>(0x7f800001u);
  const auto found = find_non_finite(state.views, pool);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "a");
  EXPECT_EQ(found->element, 7000);
}

}  // namespace
}  // namespace dz::checkpoint
