// Files of other projects that are too large for this repository; tools/fetch-references brings them.
// A test that needs one begins with DZ_REFERENCE. Without the files it is left out, and tools/test.sh counts it; with
// DZ_REQUIRE_REFERENCES=1, as .ci/run sets, it fails instead.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dz {

// `name` as in "tokenizers/allenai_dolma2.json", below DZ_REFERENCES or, without that variable, build/references.
inline std::filesystem::path reference_path(const std::string& name) {
  const char* directory = std::getenv("DZ_REFERENCES");
  const std::filesystem::path root = directory ? directory : DZ_SOURCE "/build/references";
  return root / name;
}

inline bool references_required() {
  const char* required = std::getenv("DZ_REQUIRE_REFERENCES");
  return required && std::string(required) == "1";
}

}  // namespace dz

// Defines `path`, or ends the test. The property is what tools/test.sh counts in GoogleTest's record.
#define DZ_REFERENCE(path, name)                                                                  \
  const std::filesystem::path path = ::dz::reference_path(name);                                  \
  if (!std::filesystem::exists(path)) {                                                           \
    if (::dz::references_required()) FAIL() << path << " is missing: run tools/fetch-references"; \
    ::testing::Test::RecordProperty("left_out", 1);                                               \
    GTEST_SKIP() << "needs tools/fetch-references: " << path;                                     \
  }
