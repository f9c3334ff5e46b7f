// Attention forward over AMX tiles. A piece of work is 32 queries against 64 keys: scores, weights, values.
#include <new>

#include "kernels/amx/attention.h"
#include "kernels/amx/attention_columns.h"
#include "kernels/attention_ahead.h"
#include "kernels/attention_scratch.h"

namespace dz::kernels::amx {
namespace {

// Query tiles of a head that share the packing of keys and values, and key tiles that are packed at a time. At head_dim 64 a query tile takes
// 24 KiB and a key tile 16: together 320 KiB in L2. Half a query tile (12 KiB), scores and weights of a piece (12) stay in L1, where key tiles
// pass by.
constexpr int64_t kQueryTiles = 8, kKeyTiles = 8;

// A piece takes the time of 32 queries however few there are: up to here (one is decoding) the vector form is quicker.
constexpr int64_t kFewQueries = 4;

// Of one query tile, each half of its queries by itself. queries: B operand [2][wide / 2][32] pairs along head_dim; o: O^T, [2][wide][32]. A piece
// of work then lies in whole lines of L1 next to each other; rows of 64 would put half a tile into half of the sets.
struct QueryTile {
  Columns columns;
  alignas(64) float m[kTile], l[kTile];
  uint32_t* queries;
  float* o;
};

// keys: A operand [64][wide]; values: V^T, A operand [wide][64].
struct KeyTile {
  int64_t key = 0, count = 0;
  bool packed = false;
  uint16_t *keys, *values;
};

// A piece of work: 32 queries of a tile, from `column` on, against a key tile. s: scores [64 keys][32 queries]; p: weights, B operand of pairs of
// keys: [2 blocks][2 columns of 16][16 pairs][16 queries].
struct Piece {
  alignas(64) float s[kTile * kHalf];
  alignas(64) uint32_t p[kTile * kHalf / 2];
  QueryTile* tile = nullptr;
  const KeyTile* keys = nullptr;
  int64_t column = 0, wide = 0;
  float scale = 0;
};

DZ_INLINE void multiply_scores(Piece& piece) {
  TileProduct product{.a_stride = piece.wide * 2, .b = piece.tile->queries + piece.column * piece.wide / 2, .b_stride = kHalf * 4};
  product.b_next = 64;
  product.b_block = 16 * kHalf * 4;
  product.c_stride = kHalf * 4;
  product.blocks = piece.wide / kBlock;
  for (int64_t key = 0; key < kTile; key += kBlock) {
    product.a = piece.keys->keys + key * piece.wide;
    product.c = piece.s + key * kHalf;
    multiply(product);
  }
}

DZ_INLINE void add_values(Piece& piece) {
  TileProduct product{.a_stride = kTile * 2, .b = piece.p, .b_stride = 64, .b_next = 1024, .b_block = 2048};
  product.c_stride = kHalf * 4;
  product.blocks = padded(piece.keys->count) / kBlock;
  product.add = true;
  for (int64_t d = 0; d < piece.wide; d += kBlock) {
    product.a = piece.keys->values + d * kTile;
    product.c = piece.tile->o + piece.column * piece.wide + d * kHalf;
    multiply(product);
  }
}

// The greatest score of each column, -inf where none is seen; c > 0 moves none past another, so that only the greatest has to be scaled.
template <bool kMasked>
DZ_INLINE void greatest_scores(const Piece& piece, V16 (&greatest)[2]) {
  V16 top[4] = {splat(-numerics::kInfinity), splat(-numerics::kInfinity), splat(-numerics::kInfinity), splat(-numerics::kInfinity)};
  const Columns& columns = piece.tile->columns;
  for (int64_t key = 0; key < kTile; key += 2) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      const V16 s = load(piece.s + (key + i / 2) * kHalf + i % 2 * kLanes);
      if constexpr (kMasked) {
        const int64_t at = piece.column + i % 2 * kLanes;
        const __mmask16 seen = sees(_mm512_load_si512(columns.first + at), _mm512_load_si512(columns.last + at), piece.keys->key + key + i / 2);
        top[i] = select({seen}, raise(top[i], s), top[i]);
      } else {
        top[i] = raise(top[i], s);
      }
    }
  }
  greatest[0] = raise(top[0], top[2]);
  greatest[1] = raise(top[1], top[3]);
}

// The weights of keys `lane`, `lane + 1` and those 16, 32 and 48 further on, which are the lanes of a row sum; their sums to `sums`.
template <bool kMasked>
DZ_INLINE void weights(Piece& piece, int64_t lane, int64_t half, V16 c, V16 m, V16* sums) {
  const Columns& columns = piece.tile->columns;
  const int64_t at = piece.column + half * kLanes;
  V16 sum[2];
#pragma GCC unroll 4
  for (int64_t row = 0; row < 4; ++row) {
    V16 p[2];
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t key = row * kLanes + lane + i;
      p[i] = exp2_by_parts(load(piece.s + key * kHalf + half * kLanes) * c - m);
      if constexpr (kMasked) {
        const __mmask16 seen = sees(_mm512_load_si512(columns.first + at), _mm512_load_si512(columns.last + at), piece.keys->key + key);
        p[i] = select({seen}, p[i], zero());
      }
      sum[i] = row == 0 ? p[i] : sum[i] + p[i];
    }
    const int64_t pair = row % 2 * 8 + lane / 2;
    store_pairs(piece.p + ((row / 2 * 2 + half) * 16 + pair) * 16, p[0], p[1]);
  }
  sums[0] = sum[0];
  sums[1] = sum[1];
}

DZ_INLINE V16 tree_sum(const V16* lanes) {
  V16 eight[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) eight[i] = lanes[i] + lanes[i + 8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) eight[i] = eight[i] + eight[i + 4];
  return (eight[0] + eight[2]) + (eight[1] + eight[3]);
}

// O^T to the new maximum, where one moved.
DZ_INLINE void rescale(const Piece& piece, const V16 (&alpha)[2]) {
  const V16 one = splat(1.0f);
  const auto same = _mm512_cmp_ps_mask(alpha[0].v, one.v, _CMP_EQ_OQ) & _mm512_cmp_ps_mask(alpha[1].v, one.v, _CMP_EQ_OQ);
  if (same == 0xffff) return;
  float* o = piece.tile->o + piece.column * piece.wide;
  for (int64_t d = 0; d < piece.wide; ++d, o += kHalf) {
    store(o, load(o) * alpha[0]);
    store(o + kLanes, load(o + kLanes) * alpha[1]);
  }
}

template <bool kMasked>
void softmax(Piece& piece) {
  QueryTile& tile = *piece.tile;
  const V16 c = splat(piece.scale);
  V16 m[2], alpha[2], sums[2][kLanes];
  greatest_scores<kMasked>(piece, m);
  for (int64_t half = 0; half < 2; ++half) {
    float* before = tile.m + piece.column + half * kLanes;
    m[half] = raise(load(before), m[half] * c);
    alpha[half] = exp2_by_parts(load(before) - m[half]);
    store(before, m[half]);
    for (int64_t lane = 0; lane < kLanes; lane += 2) weights<kMasked>(piece, lane, half, c, m[half], &sums[half][lane]);
    float* l = tile.l + piece.column + half * kLanes;
    store(l, load(l) * alpha[half] + tree_sum(sums[half]));
  }
  rescale(piece, alpha);
}

DZ_INLINE void run(Piece& piece) {
  multiply_scores(piece);
  if (half_sees_all(piece.tile->columns, piece.column, piece.keys->key, kTile)) {
    softmax<false>(piece);
  } else {
    softmax<true>(piece);
  }
  add_values(piece);
}

DZ_INLINE void start(const AttentionForward<bf16>& args, int64_t instance, int64_t head, int64_t index, uint16_t* rows, QueryTile& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t wide = padded(shape.head_dim), stride = shape.heads * shape.head_dim;
  set_columns(shape, instance, index, tile.columns);
  const int64_t first = instance * (shape.keys - shape.first_query) + tile.columns.position - shape.first_query;
  pack_rows(args.q + first * stride + head * shape.head_dim, stride, tile.columns.rows, shape.head_dim, rows);
  for (int64_t half = 0; half < 2; ++half) {
    transpose_operand(reinterpret_cast<const uint32_t*>(rows + half * kHalf * wide), kHalf, wide / 2, tile.queries + half * kHalf * wide / 2);
  }
  __builtin_memset(tile.o, 0, static_cast<size_t>(wide * kTile) * sizeof(float));
  for (int64_t i = 0; i < kTile; i += kLanes) {
    store(tile.m + i, splat(numerics::kLowest));
    store(tile.l + i, zero());
  }
}

DZ_INLINE void finish(const AttentionForward<bf16>& args, int64_t instance, int64_t head, const QueryTile& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, count = shape.keys - shape.first_query, first = tile.columns.position - shape.first_query;
  alignas(64) float scale[kTile], turned[kLanes * kLanes];
  for (int64_t i = 0; i < kTile; i += kLanes) {
    const V16 l = load(tile.l + i);
    const __mmask16 none = _mm512_cmp_ps_mask(l.v, _mm512_setzero_ps(), _CMP_EQ_OQ);
    store(scale + i, select({none}, zero(), splat(1.0f) / l));
  }
  for (int64_t i = 0; i < tile.columns.rows; i += kLanes) {
    const float* o = tile.o + i / kHalf * kHalf * padded(dim) + i % kHalf;
    for (int64_t d = 0; d < dim; d += kLanes) {
      __m512i r[4][4];
#pragma GCC unroll 16
      for (int64_t j = 0; j < kLanes; ++j) {
        r[j / 4][j % 4] = _mm512_castps_si512((load(o + (d + j) * kHalf) * load(scale + i) + zero()).v);
      }
      store_16x16(r, reinterpret_cast<uint32_t*>(turned), kLanes);
      const First lanes{dim - d < kLanes ? dim - d : kLanes};
      for (int64_t j = 0; j < kLanes && i + j < tile.columns.rows; ++j) {
        store(args.out + ((instance * count + first + i + j) * shape.heads + head) * dim + d, load(turned + j * kLanes), lanes);
      }
    }
  }
  const int64_t at = (instance * shape.heads + head) * count + first;
  for (int64_t i = 0; i < tile.columns.rows; ++i) {
    if (args.row_max != nullptr) args.row_max[at + i] = tile.m[i] + 0.0f;
    if (args.row_scale != nullptr) args.row_scale[at + i] = scale[i];
  }
}

// Memory of a unit: query tiles, key tiles, and rows on their way to an operand.
struct Memory {
  QueryTile tiles[kQueryTiles];
  KeyTile keys[kKeyTiles];
  Piece piece;
  uint16_t* rows;
  uint32_t* pairs;
};

DZ_INLINE Memory& take_memory(int64_t wide) {
  const auto header = static_cast<int64_t>(sizeof(Memory) + 63) / 64 * 64;
  const int64_t query = kTile * wide * 6, key = kTile * wide * 4, rows = kTile * wide * 4;
  char* to = static_cast<char*>(attention_scratch(header + kQueryTiles * query + kKeyTiles * key + rows));
  Memory& memory = *new (to) Memory;
  to += header;
  for (QueryTile& tile : memory.tiles) {
    tile.o = reinterpret_cast<float*>(to);
    tile.queries = reinterpret_cast<uint32_t*>(to + kTile * wide * 4);
    to += query;
  }
  for (KeyTile& tile : memory.keys) {
    tile.keys = reinterpret_cast<uint16_t*>(to);
    tile.values = tile.keys + kTile * wide;
    to += key;
  }
  memory.rows = reinterpret_cast<uint16_t*>(to);
  memory.pairs = reinterpret_cast<uint32_t*>(memory.rows + kTile * wide);
  memory.piece.wide = wide;
  return memory;
}

DZ_INLINE void pack_keys(const AttentionForward<bf16>& args, int64_t instance, int64_t kv_head, Memory& memory, KeyTile& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, wide = padded(dim), stride = shape.kv_heads * dim;
  const int64_t at = (instance * shape.keys + tile.key) * stride + kv_head * dim;
  pack_rows(args.k + at, stride, tile.count, dim, tile.keys);
  pack_rows(args.v + at, stride, tile.count, dim, memory.rows);
  pair_rows(memory.rows, wide, memory.pairs);
  transpose_operand(memory.pairs, kTile / 2, wide, reinterpret_cast<uint32_t*>(tile.values));
  tile.packed = true;
}

// `tiles` neighbouring query tiles of one head, from tile `first` on.
void query_tiles(const AttentionForward<bf16>& args, int64_t instance, int64_t head, int64_t first, int64_t tiles, Memory& memory) {
  const AttentionShape& shape = args.shape;
  const int64_t kv_head = head / (shape.heads / shape.kv_heads), end = (first + tiles) * kTile < shape.keys ? (first + tiles) * kTile : shape.keys;
  for (int64_t i = 0; i < tiles; ++i) start(args, instance, head, first + i, memory.rows, memory.tiles[i]);
  for (int64_t chunk = 0; chunk < end; chunk += kKeyTiles * kTile) {
    for (int64_t j = 0; j < kKeyTiles; ++j) {
      const int64_t key = chunk + j * kTile;
      memory.keys[j].key = key;
      memory.keys[j].count = shape.keys - key < kTile ? shape.keys - key : kTile;
      memory.keys[j].packed = false;
    }
    for (int64_t i = 0; i < tiles; ++i) {
      QueryTile& tile = memory.tiles[i];
      memory.piece.tile = &tile;
      for (int64_t column = 0; column < tile.columns.rows; column += kHalf) {
        memory.piece.column = column;
        for (int64_t j = 0; j < kKeyTiles && memory.keys[j].key < end; ++j) {
          if (!sees_tile(tile.columns, memory.keys[j].key)) continue;
          if (!memory.keys[j].packed) {
            ask_for_keys(args, instance, kv_head, memory.keys[j].key + kTile);
            pack_keys(args, instance, kv_head, memory, memory.keys[j]);
          }
          memory.piece.keys = &memory.keys[j];
          run(memory.piece);
        }
      }
    }
  }
  for (int64_t i = 0; i < tiles; ++i) finish(args, instance, head, memory.tiles[i]);
}

}  // namespace

void attention_forward(const AttentionForward<bf16>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  if (shape.queries() <= kFewQueries) return avx512_bf16::attention_forward<bf16>(args, begin, end);
  const int64_t first_tile = shape.first_query / kTile, tiles = (shape.keys + kTile - 1) / kTile - first_tile;
  Memory& memory = take_memory(padded(shape.head_dim));
  memory.piece.scale = attention_scale(shape.head_dim).exponent;
  _tile_loadconfig(&kTileConfig);
  for (int64_t unit = begin; unit < end;) {
    const int64_t tile = unit % tiles, left_in_head = tiles - tile, left = end - unit < left_in_head ? end - unit : left_in_head;
    const int64_t group = left < kQueryTiles ? left : kQueryTiles;
    query_tiles(args, unit / (tiles * shape.heads), unit / tiles % shape.heads, first_tile + tile, group, memory);
    unit += group;
  }
  _tile_release();
}

}  // namespace dz::kernels::amx
