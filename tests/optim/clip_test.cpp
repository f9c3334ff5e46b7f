#include "optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "optim/golden.h"

namespace dz::optim {
namespace {

using test::Json;
using Tensors = std::vector<std::vector<float>>;

float norm_of(const Tensors& tensors, int threads = 1) {
  std::vector<GradientView> views;
  for (size_t i = 0; i < tensors.size(); ++i)
    views.push_back(
        {.name = std::string(1, static_cast<char>('a' + i)), .count = static_cast<int64_t>(tensors[i].size()), .data = tensors[i].data()});
  ThreadPool pool(threads);
  return global_norm(views, pool);
}

Tensors read_case(const checkpoint::TensorSource& source, const std::string& name, const std::string& kind) {
  Tensors tensors;
  for (int i = 0; source.find(name + "." + kind + "." + std::to_string(i)); ++i)
    tensors.push_back(test::read_tensor(source, name + "." + kind + "." + std::to_string(i)));
  return tensors;
}

TEST(Clip, NormCoefficientAndProductsAsInTheGoldens) {
  const auto source = checkpoint::TensorSource::open(test::golden_path("clip.safetensors"));
  const Json golden = test::golden_json("clip.json");
  int cases = 0;
  for (const Json& row : golden["rows"]) {
    if (row["dtype"] != "float32") continue;
    const std::string name = row["case"];
    const Tensors gradients = read_case(source, name, "grad"), clipped = read_case(source, name, "clipped");
    const double exact = test::hex(row["total_norm_float64"]);
    const float ours = norm_of(gradients), theirs = test::hex_float(row["total_norm"]);
    if (std::isfinite(exact))
      EXPECT_NEAR(ours, exact, 1e-6 * exact) << name;  // also where float32 squares overflow
    else
      EXPECT_EQ(std::isnan(ours), std::isnan(exact)) << name;

    const float coefficient = clip_coefficient(theirs, row["max_norm"]);
    const float expected = test::hex_float(row["coefficient"]);
    EXPECT_TRUE(coefficient == expected || (std::isnan(coefficient) && std::isnan(expected))) << name << " " << coefficient;
    for (size_t i = 0; i < clipped.size(); ++i) {
      const size_t stride = clipped[i].size() == gradients[i].size() ? 1 : 97;
      for (size_t j = 0; j < clipped[i].size(); ++j) {
        const float product = gradients[i][j * stride] * coefficient;
        EXPECT_TRUE(product == clipped[i][j] || (std::isnan(product) && std::isnan(clipped[i][j]))) << name << " tensor " << i << " element " << j;
      }
    }
    ++cases;
  }
  EXPECT_EQ(cases, 11);
}

// D7 and row 79: two tensors with norms 3 and 4 have norm 5 (not 7, not 3.5355), and the factor for 1.0 is 0.2.
TEST(Clip, NormsJoinAsSquares) {
  const float norm = norm_of({{3.0f}, {0.0f, 4.0f}});
  EXPECT_EQ(norm, 5.0f);
  EXPECT_NEAR(clip_coefficient(norm, 1.0f), 0.2, 1e-6);
  EXPECT_EQ(clip_coefficient(norm, 0.0f), 1.0f);
  EXPECT_EQ(clip_coefficient(0.5f, 1.0f), 1.0f);
}

TEST(Clip, ThreadsDoNotMatterAndEveryElementDoes) {
  Tensors tensors = {std::vector<float>(3 * 4096 + 17), std::vector<float>(5)};
  for (size_t i = 0; i < tensors[0].size(); ++i) tensors[0][i] = std::ldexp(static_cast<float>(i % 97) - 48, static_cast<int>(i % 5));
  const float norm = norm_of(tensors);
  for (const int threads : {2, 3}) EXPECT_EQ(norm_of(tensors, threads), norm);
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{4096}, tensors[0].size() - 1}) {
    Tensors changed = tensors;
    changed[0][at] += 2000;
    EXPECT_NE(norm_of(changed), norm) << at;
    changed[0][at] = std::nanf("");
    EXPECT_TRUE(std::isnan(norm_of(changed)));
  }
}

}  // namespace
}  // namespace dz::optim
