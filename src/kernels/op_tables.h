// The shapes on which every form of an op must equal the scalar one. One row is one case for bf16 and one for float.
#pragma once

#include <cstdint>

namespace dz::kernels {

enum class CaseSet : uint8_t {
  kQuick,  // the self-test at start-up
  kFull,   // tests and doctor; kQuick is part of it
  kBench,  // sizes of a training step; too slow for the scalar form
};

// Which numbers an input holds. Row sums of kSpecial meet few special values each, so that not everything becomes NaN.
enum class OpValues : uint8_t {
  kNormal,   // about [-1, 1]
  kTiny,     // down to denormals and zeros of either sign, where flushing shows
  kHuge,     // up to overflow
  kSpecial,  // kNormal with some inf, NaN, -0 and denormals
};

struct RowsCase {
  int64_t rows = 0, width = 0;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
  int64_t vocab = 29;  // rows of an embedding
};

inline constexpr RowsCase kRowsCases[] = {
    {.rows = 5, .width = 100, .set = CaseSet::kQuick},  // a masked tail, one row left over from the groups of four
    {.rows = 3, .width = 37, .values = OpValues::kSpecial, .set = CaseSet::kQuick},
    {.rows = 1, .width = 1},
    {.rows = 1, .width = 16},
    {.rows = 2, .width = 15},
    {.rows = 33, .width = 96},
    {.rows = 64, .width = 768},
    {.rows = 67, .width = 200},
    {.rows = 9, .width = 130, .values = OpValues::kTiny},
    {.rows = 9, .width = 130, .values = OpValues::kHuge},
    {.rows = 40, .width = 72, .values = OpValues::kSpecial},
    {.rows = 4096, .width = 1024, .set = CaseSet::kBench},
};

// Backward passes of norms, and column sums; both restart at segments; 0 is one segment.
struct ColumnsCase {
  int64_t rows = 0, width = 0, segment = 0;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
  int64_t vocab = 29;  // rows of an embedding
};

inline constexpr ColumnsCase kColumnsCases[] = {
    {.rows = 70, .width = 21, .segment = 35, .set = CaseSet::kQuick},
    {.rows = 37, .width = 37, .segment = 20, .values = OpValues::kSpecial, .set = CaseSet::kQuick},
    {.rows = 1, .width = 1},
    {.rows = 2, .width = 15},
    {.rows = 31, .width = 100},
    {.rows = 64, .width = 64, .segment = 32},
    {.rows = 99, .width = 150, .segment = 33},
    {.rows = 130, .width = 257, .segment = 65},
    {.rows = 63, .width = 80, .segment = 31, .values = OpValues::kTiny},
    {.rows = 63, .width = 80, .segment = 31, .values = OpValues::kHuge},
    {.rows = 200, .width = 40, .segment = 100, .values = OpValues::kSpecial},
    {.rows = 4096, .width = 1024, .segment = 1024, .set = CaseSet::kBench},
};

struct RopeCase {
  int64_t rows = 0, heads = 0, head_dim = 0, positions = 0, first_position = 0;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
};

inline constexpr RopeCase kRopeCases[] = {
    {.rows = 5, .heads = 3, .head_dim = 24, .positions = 5, .set = CaseSet::kQuick},  // halves of 12: every vector is masked
    {.rows = 1, .heads = 1, .head_dim = 2, .positions = 1},
    {.rows = 14, .heads = 4, .head_dim = 64, .positions = 7},
    {.rows = 9, .heads = 2, .head_dim = 100, .positions = 3},
    {.rows = 6, .heads = 2, .head_dim = 128, .positions = 6},
    {.rows = 10, .heads = 3, .head_dim = 24, .positions = 10, .values = OpValues::kTiny},
    {.rows = 10, .heads = 3, .head_dim = 40, .positions = 10, .values = OpValues::kHuge},
    {.rows = 24, .heads = 2, .head_dim = 24, .positions = 12, .values = OpValues::kSpecial},
    {.rows = 1, .heads = 2, .head_dim = 24, .positions = 1, .first_position = 9},
    {.rows = 4096, .heads = 16, .head_dim = 64, .positions = 1024, .set = CaseSet::kBench},
};

struct ElementsCase {
  int64_t count = 0;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
};

inline constexpr ElementsCase kElementsCases[] = {
    {.count = 77, .set = CaseSet::kQuick},
    {.count = 45, .values = OpValues::kSpecial, .set = CaseSet::kQuick},
    {.count = 1},
    {.count = 16},
    {.count = 4096},
    {.count = 4097},
    {.count = 3001, .values = OpValues::kTiny},
    {.count = 3001, .values = OpValues::kHuge},
    {.count = 9000, .values = OpValues::kSpecial},
    {.count = 1 << 22, .set = CaseSet::kBench},
};

struct LossCase {
  int64_t rows = 0, vocab = 0;
  float z_loss = 0;
  bool gradient = true;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
};

inline constexpr LossCase kLossCases[] = {
    {.rows = 3, .vocab = 101, .z_loss = 1e-5f, .set = CaseSet::kQuick},
    {.rows = 2, .vocab = 1},
    {.rows = 4, .vocab = 16, .z_loss = 1e-4f},
    {.rows = 9, .vocab = 1000, .z_loss = 1e-5f},
    {.rows = 3, .vocab = 4099, .gradient = false},
    {.rows = 8, .vocab = 201, .z_loss = 1e-5f, .values = OpValues::kTiny},
    {.rows = 8, .vocab = 201, .z_loss = 1e-5f, .values = OpValues::kHuge},
    {.rows = 40, .vocab = 77, .z_loss = 1e-5f, .values = OpValues::kSpecial},
    {.rows = 64, .vocab = 50304, .z_loss = 1e-5f, .set = CaseSet::kBench},
};

struct AttentionCase {
  int64_t instances = 1, keys = 0, first_query = 0, heads = 1, kv_heads = 1, head_dim = 0, window = 0;
  bool documents = false;
  OpValues values = OpValues::kNormal;
  CaseSet set = CaseSet::kFull;
  float spread = 1;  // of the scores; 40 puts many of them about 126 below the maximum, where exp2 goes under
};

inline constexpr AttentionCase kAttentionCases[] = {
    {.keys = 70, .heads = 2, .kv_heads = 1, .head_dim = 24, .window = 50, .documents = true, .set = CaseSet::kQuick},
    {.keys = 1, .head_dim = 2},
    {.keys = 64, .heads = 2, .kv_heads = 2, .head_dim = 64},
    {.instances = 2, .keys = 97, .heads = 4, .kv_heads = 2, .head_dim = 24, .window = 33, .documents = true},
    {.keys = 200, .heads = 3, .kv_heads = 1, .head_dim = 40, .window = 64},
    {.keys = 161, .heads = 2, .kv_heads = 1, .head_dim = 96, .documents = true},
    {.keys = 130, .head_dim = 128},
    {.keys = 65, .head_dim = 256, .window = 1},
    {.keys = 330, .head_dim = 16, .window = 70},  // whole tile pairs outside the window
    {.keys = 100, .heads = 2, .kv_heads = 1, .head_dim = 24, .window = 40, .values = OpValues::kTiny},
    {.keys = 100, .heads = 2, .kv_heads = 1, .head_dim = 24, .window = 40, .values = OpValues::kHuge},
    {.keys = 150, .heads = 2, .kv_heads = 1, .head_dim = 24, .window = 40, .documents = true, .values = OpValues::kSpecial},
    {.instances = 2, .keys = 101, .first_query = 100, .heads = 2, .kv_heads = 1, .head_dim = 24},  // one cached step
    {.keys = 150, .first_query = 146, .heads = 2, .kv_heads = 2, .head_dim = 64, .window = 30},    // some cached steps
    {.keys = 135, .first_query = 126, .heads = 2, .kv_heads = 1, .head_dim = 40},                  // over the end of a tile
    {.keys = 150, .heads = 2, .kv_heads = 1, .head_dim = 64, .window = 100, .spread = 40},
    {.keys = 140, .first_query = 70, .heads = 2, .kv_heads = 1, .head_dim = 64, .window = 30},
    {.instances = 2, .keys = 1024, .heads = 8, .kv_heads = 8, .head_dim = 64, .set = CaseSet::kBench},
    {.instances = 2, .keys = 1024, .heads = 4, .kv_heads = 4, .head_dim = 128, .set = CaseSet::kBench},
    {.instances = 2, .keys = 1024, .heads = 8, .kv_heads = 4, .head_dim = 64, .window = 256, .set = CaseSet::kBench},
};

}  // namespace dz::kernels
