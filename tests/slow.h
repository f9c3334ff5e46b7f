// Tests that take too long for every run. One begins with DZ_SLOW; without DZ_SLOW_TESTS=1 it is left out, and tools/test.sh counts it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace dz {

inline bool slow_tests_wanted() {
  const char* wanted = std::getenv("DZ_SLOW_TESTS");
  return wanted && std::string(wanted) == "1";
}

}  // namespace dz

#define DZ_SLOW                                            \
  if (!::dz::slow_tests_wanted()) {                        \
    ::testing::Test::RecordProperty("slow", 1);            \
    GTEST_SKIP() << "takes long; DZ_SLOW_TESTS=1 runs it"; \
  }
