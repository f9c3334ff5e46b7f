// Attention backward over AMX tiles. Key tiles are the outer loop: dK and dV of a key tile are one chain over (query head, query tile); a query
// tile is packed once and gathers its dQ over the key tiles in ascending order. A step is 32 keys against the 64 queries of a tile, so that its
// scores and gradients of scores (24 KiB) stay in L1.
#include <new>

#include "kernels/amx/attention.h"
#include "kernels/amx/attention_columns.h"
#include "kernels/attention_scratch.h"

namespace dz::kernels::amx {
namespace {

// What every key tile needs of a query tile: Q and dO as B operands along head_dim ([wide / 2][64] pairs) and along the queries ([32][wide] pairs),
// for each query the maximum, 1 / l and D = row sum of dO * O, and dQ^T so far, [wide][64].
struct QueryTile {
  Columns columns;
  alignas(64) float m[kTile], scale[kTile], d[kTile];
  uint32_t *q_columns, *q_rows, *dout_columns, *dout_rows;
  float* dq;
};

// A key tile: K and V as A operands [64][wide], K^T as one [wide][64], and its gradients [64][wide].
struct KeyTile {
  int64_t key = 0, count = 0;
  uint16_t *k, *v, *k_transposed;
  float *dk, *dv;
};

// Of 32 keys and 64 queries: S^T and dP^T, and P^T and dS^T rounded, as A operands.
struct Step {
  alignas(64) float s[kBlock * kTile], dp[kBlock * kTile];
  alignas(64) uint16_t p[kBlock * kTile], ds[kBlock * kTile];
};

struct Work {
  int64_t wide = 0;
  AttentionScale scale;
  Step step;
  alignas(64) uint32_t ds_pairs[kTile / 2 * kTile];  // dS as a B operand, [32 pairs of keys][64 queries]
};

// S^T and dP^T of the keys of step `half`: 32 x 64 each.
DZ_INLINE void multiply_scores(Work& work, const QueryTile& tile, const KeyTile& keys, int64_t half) {
  Step& step = work.step;
  for (int64_t column = 0; column < kTile; column += kHalf) {
    TileProduct product{.a = keys.k + half * kBlock * work.wide, .a_stride = work.wide * 2, .b = tile.q_columns + column};
    product.b_stride = kTile * 4;
    product.b_next = 64;
    product.b_block = 16 * kTile * 4;
    product.c = step.s + column;
    product.c_stride = kTile * 4;
    product.blocks = work.wide / kBlock;
    multiply(product);
    product.a = keys.v + half * kBlock * work.wide;
    product.b = tile.dout_columns + column;
    product.c = step.dp + column;
    multiply(product);
  }
}

// dV += P^T dO and dK += dS^T Q for the keys of step `half`.
DZ_INLINE void add_key_gradients(Work& work, const QueryTile& tile, const KeyTile& keys, int64_t half) {
  Step& step = work.step;
  for (int64_t d = 0; d < work.wide; d += kBlock) {
    TileProduct product{.a = step.p, .a_stride = kTile * 2, .b = tile.dout_rows + d, .b_stride = work.wide * 4, .b_next = 64};
    product.b_block = 16 * work.wide * 4;
    product.c = keys.dv + half * kBlock * work.wide + d;
    product.c_stride = work.wide * 4;
    product.blocks = padded(tile.columns.rows) / kBlock;
    product.add = true;
    multiply(product);
    product.a = step.ds;
    product.b = tile.q_rows + d;
    product.c = keys.dk + half * kBlock * work.wide + d;
    multiply(product);
  }
}

// dQ^T += K^T dS^T over the keys of both steps.
DZ_INLINE void add_query_gradients(Work& work, const QueryTile& tile, const KeyTile& keys) {
  for (int64_t d = 0; d < work.wide; d += kBlock) {
    for (int64_t column = 0; column < kTile; column += kHalf) {
      TileProduct product{.a = keys.k_transposed + d * kTile, .a_stride = kTile * 2, .b = work.ds_pairs + column};
      product.b_stride = kTile * 4;
      product.b_next = 64;
      product.b_block = 16 * kTile * 4;
      product.c = tile.dq + d * kTile + column;
      product.c_stride = kTile * 4;
      product.blocks = padded(keys.count) / kBlock;
      product.add = true;
      multiply(product);
    }
  }
}

// P and dS of the keys `row` and `row + 1` of a step and the 32 queries from `column` on. Queries and keys past the end are +0 in both.
template <bool kMasked>
DZ_INLINE void pair_gradients(const Work& work, const QueryTile& tile, Step& step, int64_t key, int64_t keys_end, int64_t row, int64_t column,
                              uint32_t* ds_pairs) {
  const V16 c = splat(work.scale.exponent), gradient = splat(work.scale.gradient);
  __m512i ds_rows[2];
#pragma GCC unroll 2
  for (int64_t i = 0; i < 2; ++i) {
    V16 p[2], ds[2];
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v) {
      const int64_t at = (row + i) * kTile + column + v * kLanes, query = column + v * kLanes;
      V16 e = exp2_by_parts(load(step.s + at) * c - load(tile.m + query));
      __mmask16 exist = 0xffff;
      if constexpr (kMasked) {
        const __m512i last = _mm512_load_si512(tile.columns.last + query);
        e = select({sees(_mm512_load_si512(tile.columns.first + query), last, key + row + i)}, e, zero());
        exist = key + row + i < keys_end ? _mm512_cmpge_epi32_mask(last, _mm512_setzero_si512()) : static_cast<__mmask16>(0);
      }
      p[v] = e * load(tile.scale + query);
      ds[v] = (p[v] * (load(step.dp + at) - load(tile.d + query))) * gradient;
      if constexpr (kMasked) {
        p[v] = select({exist}, p[v], zero());
        ds[v] = select({exist}, ds[v], zero());
      }
    }
    _mm512_store_si512(step.p + (row + i) * kTile + column, round_row(p[0], p[1]));
    ds_rows[i] = round_row(ds[0], ds[1]);
    _mm512_store_si512(step.ds + (row + i) * kTile + column, ds_rows[i]);
  }
  weave(ds_rows[0], ds_rows[1], ds_pairs + row / 2 * kTile + column, ds_pairs + row / 2 * kTile + column + kLanes);
}

template <bool kMasked>
void step_gradients(Work& work, const QueryTile& tile, const KeyTile& keys, int64_t half) {
  Step& step = work.step;
  const int64_t key = keys.key + half * kBlock;
  uint32_t* ds_pairs = work.ds_pairs + half * kBlock / 2 * kTile;
  for (int64_t column = 0; column < kTile; column += kHalf) {
#pragma GCC unroll 1
    for (int64_t row = 0; row < kBlock; row += 2) pair_gradients<kMasked>(work, tile, step, key, keys.key + keys.count, row, column, ds_pairs);
  }
}

DZ_INLINE void run_step(Work& work, const QueryTile& tile, const KeyTile& keys, int64_t half) {
  const int64_t key = keys.key + half * kBlock;
  if (half_sees_all(tile.columns, 0, key, kBlock) && half_sees_all(tile.columns, kHalf, key, kBlock)) {
    step_gradients<false>(work, tile, keys, half);
  } else {
    step_gradients<true>(work, tile, keys, half);
  }
}

DZ_INLINE void tile_pair(Work& work, const QueryTile& tile, const KeyTile& keys) {
  for (int64_t half = 0; half < 2; ++half) {
    multiply_scores(work, tile, keys, half);
    run_step(work, tile, keys, half);
    add_key_gradients(work, tile, keys, half);
  }
  add_query_gradients(work, tile, keys);
}

struct Memory {
  Work work;
  KeyTile keys;
  uint16_t* rows;
  uint32_t* pairs;
  QueryTile* tiles;
};

DZ_INLINE Memory& take_memory(int64_t wide, int64_t tiles) {
  const int64_t header = (static_cast<int64_t>(sizeof(Memory)) + 63) / 64 * 64, tile_bytes = static_cast<int64_t>(sizeof(QueryTile));
  const int64_t query = kTile * wide * 12, key = kTile * wide * 14, rows = kTile * wide * 4;
  char* to = static_cast<char*>(attention_scratch(header + tiles * (tile_bytes + query) + key + rows));
  Memory& memory = *new (to) Memory;
  memory.work.wide = wide;
  to += header;
  memory.tiles = reinterpret_cast<QueryTile*>(to);
  to += tiles * tile_bytes;
  const auto words = [&](int64_t count) {
    char* from = to;
    to += count * 4;
    return from;
  };
  for (int64_t i = 0; i < tiles; ++i) {
    QueryTile& tile = *new (memory.tiles + i) QueryTile;
    tile.q_columns = reinterpret_cast<uint32_t*>(words(kTile * wide / 2));
    tile.q_rows = reinterpret_cast<uint32_t*>(words(kTile * wide / 2));
    tile.dout_columns = reinterpret_cast<uint32_t*>(words(kTile * wide / 2));
    tile.dout_rows = reinterpret_cast<uint32_t*>(words(kTile * wide / 2));
    tile.dq = reinterpret_cast<float*>(words(kTile * wide));
  }
  memory.keys.k = reinterpret_cast<uint16_t*>(words(kTile * wide / 2));
  memory.keys.v = reinterpret_cast<uint16_t*>(words(kTile * wide / 2));
  memory.keys.k_transposed = reinterpret_cast<uint16_t*>(words(kTile * wide / 2));
  memory.keys.dk = reinterpret_cast<float*>(words(kTile * wide));
  memory.keys.dv = reinterpret_cast<float*>(words(kTile * wide));
  memory.rows = reinterpret_cast<uint16_t*>(words(kTile * wide / 2));
  memory.pairs = reinterpret_cast<uint32_t*>(words(kTile * wide / 2));
  return memory;
}

DZ_INLINE void pack_query_tile(const AttentionBackward<bf16>& args, int64_t instance, int64_t head, int64_t index, Memory& memory, QueryTile& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, wide = padded(dim), stride = shape.heads * dim;
  set_columns(shape, instance, index, tile.columns);
  const int64_t rows = tile.columns.rows, at = (instance * shape.keys + tile.columns.position) * stride + head * dim;
  pack_rows(args.q + at, stride, rows, dim, memory.rows);
  transpose_operand(reinterpret_cast<const uint32_t*>(memory.rows), kTile, wide / 2, tile.q_columns);
  pair_rows(memory.rows, wide, tile.q_rows);
  pack_rows(args.dout + at, stride, rows, dim, memory.rows);
  transpose_operand(reinterpret_cast<const uint32_t*>(memory.rows), kTile, wide / 2, tile.dout_columns);
  pair_rows(memory.rows, wide, tile.dout_rows);
  __builtin_memset(tile.dq, 0, static_cast<size_t>(kTile * wide) * sizeof(float));
  const int64_t statistics = (instance * shape.heads + head) * shape.keys + tile.columns.position;
  for (int64_t i = 0; i < kTile; ++i) {
    V16 dot = zero();
    if (i < rows) {
      for_vectors(dim, [&](int64_t j, auto lanes) {
        dot = fma(load(args.dout + at + i * stride + j, lanes), load(args.out + at + i * stride + j, lanes), dot);
      });
    }
    tile.d[i] = sum(dot);
    tile.m[i] = i < rows ? args.row_max[statistics + i] : 0.0f;
    tile.scale[i] = i < rows ? args.row_scale[statistics + i] : 0.0f;
  }
}

DZ_INLINE void store_dq(const AttentionBackward<bf16>& args, int64_t instance, int64_t head, const QueryTile& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, stride = shape.heads * dim;
  float* dq = args.dq + (instance * shape.keys + tile.columns.position) * stride + head * dim;
  alignas(64) float turned[kLanes * kLanes];
  for (int64_t i = 0; i < tile.columns.rows; i += kLanes) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      __m512i r[4][4];
#pragma GCC unroll 16
      for (int64_t j = 0; j < kLanes; ++j) r[j / 4][j % 4] = _mm512_loadu_si512(tile.dq + (d + j) * kTile + i);
      store_16x16(r, reinterpret_cast<uint32_t*>(turned), kLanes);
      const First lanes{dim - d < kLanes ? dim - d : kLanes};
      for (int64_t j = 0; j < kLanes && i + j < tile.columns.rows; ++j) store(dq + (i + j) * stride + d, load(turned + j * kLanes), lanes);
    }
  }
}

// One key tile against the query tiles, which lie head by head, `tiles` a head.
DZ_INLINE void key_tile(const AttentionBackward<bf16>& args, int64_t instance, int64_t kv_head, int64_t key, int64_t tiles, Memory& memory) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, wide = padded(dim), group = shape.heads / shape.kv_heads, stride = shape.kv_heads * dim;
  KeyTile& keys = memory.keys;
  keys.key = key;
  keys.count = shape.keys - key < kTile ? shape.keys - key : kTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * dim;
  pack_rows(args.v + at, stride, keys.count, dim, keys.v);
  pack_rows(args.k + at, stride, keys.count, dim, keys.k);
  pair_rows(keys.k, wide, memory.pairs);
  transpose_operand(memory.pairs, kTile / 2, wide, reinterpret_cast<uint32_t*>(keys.k_transposed));
  __builtin_memset(keys.dk, 0, static_cast<size_t>(kTile * wide) * sizeof(float));
  __builtin_memset(keys.dv, 0, static_cast<size_t>(kTile * wide) * sizeof(float));

  for (int64_t head = 0; head < group; ++head) {
    for (int64_t tile = key / kTile; tile < tiles; ++tile) {
      const QueryTile& queries = memory.tiles[head * tiles + tile];
      if (sees_tile(queries.columns, key)) tile_pair(memory.work, queries, keys);
    }
  }
  for (int64_t i = 0; i < keys.count; ++i) {
    for_vectors(dim, [&](int64_t j, auto lanes) {
      store(args.dk + at + i * stride + j, load(keys.dk + i * wide + j), lanes);
      store(args.dv + at + i * stride + j, load(keys.dv + i * wide + j), lanes);
    });
  }
}

}  // namespace

void attention_backward(const AttentionBackward<bf16>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads, tiles = (shape.keys + kTile - 1) / kTile;
  Memory& memory = take_memory(padded(shape.head_dim), group * tiles);
  memory.work.scale = attention_scale(shape.head_dim);
  _tile_loadconfig(&kTileConfig);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t instance = unit / shape.kv_heads, kv_head = unit % shape.kv_heads, first = kv_head * group;
    for (int64_t i = 0; i < group * tiles; ++i) pack_query_tile(args, instance, first + i / tiles, i % tiles, memory, memory.tiles[i]);
    for (int64_t key = 0; key < shape.keys; key += kTile) key_tile(args, instance, kv_head, key, tiles, memory);
    for (int64_t i = 0; i < group * tiles; ++i) store_dq(args, instance, first + i / tiles, memory.tiles[i]);
  }
  _tile_release();
}

}  // namespace dz::kernels::amx
