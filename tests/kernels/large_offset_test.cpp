// Offsets beyond 2^31 elements: only the pages that are touched take memory, so the last rows of a huge array can be tested.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "kernels/ref_support.h"

namespace dz::kernels::test {
namespace {

template <class T>
class HugeArray {
 public:
  explicit HugeArray(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~HugeArray() {
    if (ok()) munmap(data_, bytes_);
  }
  HugeArray(const HugeArray&) = delete;
  HugeArray& operator=(const HugeArray&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  T* data() const { return static_cast<T*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

TEST(LargeOffsets, LossRowsBeyondTwoToThe31) {
  const int64_t vocab = 100352, rows = 21500;
  static_assert(vocab * rows > int64_t{1} << 31);
  const HugeArray<float> logits(rows * vocab);
  ASSERT_TRUE(logits.ok());
  std::vector<int32_t> targets(static_cast<size_t>(rows), kMasked);
  std::vector<float> ce(static_cast<size_t>(rows)), z(static_cast<size_t>(rows));
  Values values(4);
  std::vector<float> last = values.make<float>(vocab, 5.0f);
  std::copy(last.begin(), last.end(), logits.data() + (rows - 1) * vocab);
  targets.back() = 123;
  CrossEntropy<bf16> args{.rows = rows,
                          .vocab = vocab,
                          .logits = logits.data(),
                          .targets = targets.data(),
                          .weight = 0.5f,
                          .z_loss = 1e-5f,
                          .gradient = true,
                          .ce = ce.data(),
                          .z = z.data()};
  forms<bf16>(scalar()).cross_entropy(args, rows - 1, rows);

  float ce_alone = 0, z_alone = 0;
  const int32_t target = 123;
  args = {.rows = 1,
          .vocab = vocab,
          .logits = last.data(),
          .targets = &target,
          .weight = 0.5f,
          .z_loss = 1e-5f,
          .gradient = true,
          .ce = &ce_alone,
          .z = &z_alone};
  forms<bf16>(scalar()).cross_entropy(args, 0, 1);
  EXPECT_EQ(bits(ce.back()), bits(ce_alone));
  EXPECT_EQ(std::memcmp(logits.data() + (rows - 1) * vocab, last.data(), last.size() * sizeof(float)), 0);
}

TEST(LargeOffsets, EmbeddingTableBeyondTwoToThe31) {
  const int64_t width = 40000, token = 70000;
  static_assert(width * token > int64_t{1} << 31);
  const HugeArray<float> table((token + 1) * width);
  const HugeArray<float> grad((token + 1) * width);
  ASSERT_TRUE(table.ok() && grad.ok());
  Values values(5);
  const auto row = values.make<bf16>(width);
  for (int64_t j = 0; j < width; ++j) table.data()[token * width + j] = numerics::to_float(row[static_cast<size_t>(j)]);
  const auto id = static_cast<int32_t>(token);
  std::vector<bf16> y(row.size());
  forms<bf16>(scalar()).embedding_forward({.rows = 1, .width = width, .tokens = &id, .table = table.data(), .y = y.data()}, 0, 1);
  EXPECT_TRUE(same_bits(y, row));
  forms<bf16>(scalar()).embedding_grad({.rows = 1, .width = width, .tokens = &id, .dy = row.data(), .grad = grad.data()}, 0, width);
  EXPECT_EQ(grad.data()[token * width + 39999], numerics::to_float(row[39999]));
}

TEST(LargeOffsets, GemmStridesBeyondTwoToThe31) {
  const int64_t stride = (int64_t{1} << 31) + 7, depth = 40;
  const HugeArray<bf16> a(2 * stride), b(2 * stride);
  ASSERT_TRUE(a.ok() && b.ok());
  Values values(6);
  std::vector<bf16> small_a = values.make<bf16>(2 * depth), small_b = values.make<bf16>(2 * depth);
  for (int64_t i = 0; i < 2; ++i) {
    std::copy_n(small_a.begin() + i * depth, depth, a.data() + i * stride);
    std::copy_n(small_b.begin() + i * depth, depth, b.data() + i * stride);
  }
  std::vector<float> far(4), near(4);
  Gemm<bf16> g{
      .m = 2, .n = 2, .k = depth, .a = a.data(), .a_row = stride, .b = b.data(), .b_row = 1, .b_col = stride, .acc = far.data(), .acc_stride = 2};
  forms<bf16>(scalar()).gemm(g, nullptr);
  g = {.m = 2,
       .n = 2,
       .k = depth,
       .a = small_a.data(),
       .a_row = depth,
       .b = small_b.data(),
       .b_row = 1,
       .b_col = depth,
       .acc = near.data(),
       .acc_stride = 2};
  forms<bf16>(scalar()).gemm(g, nullptr);
  EXPECT_TRUE(same_bits(far, near));
}

}  // namespace
}  // namespace dz::kernels::test
