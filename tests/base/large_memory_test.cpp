#include "base/large_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>

namespace dz {
namespace {

uintptr_t address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

TEST(LargeMemory, BeginsAtCacheLinesAndLargePiecesAtHugePages) {
  LargeVector<float> small(3), large((size_t{4} << 20) + 1);
  EXPECT_EQ(address(small.data()) % 64, 0u);
  EXPECT_EQ(address(large.data()) % (size_t{2} << 20), 0u);
  EXPECT_EQ(large.front(), 0.0f);
  EXPECT_EQ(large.back(), 0.0f);
}

TEST(LargeMemory, WhatCannotBeHadIsRefused) { EXPECT_THROW(allocate_large(std::numeric_limits<size_t>::max() - 1), std::bad_alloc); }

}  // namespace
}  // namespace dz
