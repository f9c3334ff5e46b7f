// Every vector form of every op gives the scalar bits: the cases of kernels/op_tables.h, for each instruction set of this CPU, cut into units
// in several ways and over 1, 2 and 3 threads. The controls show that the comparison would notice.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/op_cases.h"
#include "kernels/selftest_ops.h"
#include "kernels/table.h"

namespace dz::kernels {
namespace {

PreparedCase run_scalar(const OpCase& one, OpFault fault = OpFault::kNone) {
  PreparedCase prepared = one.prepare(fault);
  prepared.run(table_of(Isa::kScalar), 0, prepared.units);
  return prepared;
}

TEST(Ops, VectorFormsEqualScalar) {
  set_flush_to_zero();
  for (const OpCase& one : op_cases(CaseSet::kFull)) {
    const PreparedCase expected = run_scalar(one);
    for (const Isa isa : available()) {
      const PreparedCase found = one.prepare(OpFault::kNone);
      found.run(table_of(isa), 0, found.units);
      EXPECT_EQ(first_difference(found, expected), "") << name_of(isa) << ": " << one.name;
    }
  }
}

// Ranges of uneven length, so that vectors and groups of rows start anywhere; each thread count cuts differently.
TEST(Ops, AnySplitOverAnyThreadsGivesTheSameBits) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const OpCase& one : op_cases(CaseSet::kFull)) {
      const PreparedCase expected = run_scalar(one);
      for (const Isa isa : available()) {
        const PreparedCase found = one.prepare(OpFault::kNone);
        const int64_t pieces = 2 * threads + 1;
        pool.parallel_for(pieces, [&](int64_t i) { found.run(table_of(isa), found.units * i / pieces, found.units * (i + 1) / pieces); });
        EXPECT_EQ(first_difference(found, expected), "") << name_of(isa) << " " << threads << " threads: " << one.name;
      }
    }
  }
}

TEST(Ops, TheComparisonNoticesOneBitAndTwoSwappedLanes) {
  set_flush_to_zero();
  for (const OpFault fault : {OpFault::kLastBit, OpFault::kSwapLanes}) {
    std::map<std::string, int> noticed, cases;
    for (const OpCase& one : op_cases(CaseSet::kFull)) {
      ++cases[one.op];
      if (!first_difference(run_scalar(one, fault), run_scalar(one)).empty()) ++noticed[one.op];
    }
    // Not in every case: a last bit can drown in a sum or in the rounding to bf16.
    for (const auto& [op, count] : cases) EXPECT_GE(noticed[op], 1) << op << ", of " << count << " cases, fault " << static_cast<int>(fault);
  }
}

TEST(Ops, TwoNansAreEqualAndTwoZerosAreNot) {
  const auto make = [](float* value) {
    return PreparedCase{.units = 1, .run = {}, .run_on = {}, .outputs = {{"x", DType::kF32, value, 1}}, .memory = {}};
  };
  float nan = __builtin_nanf("1"), other_nan = -__builtin_nanf("2"), zero = 0.0f, negative_zero = -0.0f;
  EXPECT_EQ(first_difference(make(&nan), make(&other_nan)), "");
  EXPECT_NE(first_difference(make(&nan), make(&zero)), "");
  EXPECT_NE(first_difference(make(&zero), make(&negative_zero)), "");
}

// One plain chain instead of sixteen lanes: the mistake that the row order is there to exclude.
void squared_norms_in_one_chain(const SquaredNorms& args, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    double sum = 0;
    for (int64_t i = block * kNormBlock; i < args.count && i < (block + 1) * kNormBlock; ++i) {
      sum = __builtin_fma(double{args.x[i]}, double{args.x[i]}, sum);
    }
    args.sums[block] = sum;
  }
}

TEST(Ops, TheSelfTestPassesGoodFormsAndNamesABadOne) {
  set_flush_to_zero();
  std::string what;
  for (const Isa isa : available()) EXPECT_TRUE(ops_agree(table_of(isa), table_of(Isa::kScalar), &what)) << name_of(isa) << ": " << what;
  Table wrong = table_of(Isa::kScalar);
  wrong.squared_norms = squared_norms_in_one_chain;
  EXPECT_FALSE(ops_agree(wrong, table_of(Isa::kScalar), &what));
  EXPECT_NE(what.find("squared_norms"), std::string::npos) << what;
}

}  // namespace
}  // namespace dz::kernels
