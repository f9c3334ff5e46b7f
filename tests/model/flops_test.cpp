#include "model/flops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/named.h"

namespace dz::model {
namespace {

// tests/golden/model/flops.json: OLMo 3 7B at 8,192 tokens, from MaxText's and OLMo-core's own code.
TEST(Flops, AreThoseOfTheReferences) {
  std::ifstream file(DZ_GOLDEN "/model/flops.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const int64_t seq = golden["model"]["sequence_length"];
  const auto length = static_cast<double>(seq);
  for (const nlohmann::json& row : golden["rows"]) {
    ModelConfig config = named_model("olmo3_7B").value();
    config.vocab_size = row["vocab"];
    const FlopCounts counts = flop_counts(config, seq);
    EXPECT_DOUBLE_EQ(counts.maxtext * length, row["maxtext_full_causal_per_sequence"]);
    EXPECT_DOUBLE_EQ(counts.maxtext_windows * length, row["maxtext_window_aware_per_sequence"]);
    EXPECT_DOUBLE_EQ(counts.useful * length, row["exact_pairs_window_aware_per_sequence"]);
    EXPECT_DOUBLE_EQ(counts.olmo_core, row["olmo_core_2_4_0_per_token"]);
    EXPECT_DOUBLE_EQ(counts.olmo_core_windows, row["olmo_core_newer_window_aware_per_token"]);
  }
  EXPECT_EQ(golden["rows"].size(), 2u);
}

}  // namespace
}  // namespace dz::model
