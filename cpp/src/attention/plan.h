// Plan: from the shape of a call to its tiles and tasks. Pure arithmetic: same shape and kernels, same plan, whatever
// the number of threads. Tile sizes of the driver are here and nowhere else.
#pragma once

#include <cstdint>

namespace headwise {

struct AttentionShape {
  std::int32_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
};

// What the kernels declare.
struct KernelGeometry {
  int panel;
  int row_tile;
  int lanes;
};

struct AttentionPlan {
  // Direct: a key/value head's few query rows read keys and values where they lie; tasks are (batch, kv head, key
  // split). Tiled: keys and values are packed; tasks are (batch, head, rows), the last rows first, since with causality
  // they are the longest.
  bool direct;
  int block_rows;  // rows of a score tile, and of a task
  int block_keys;  // keys of a score tile, a multiple of the panel
  int row_tasks;   // tasks a head (tiled)
  int chunk_keys;  // keys packed at a time, a multiple of block_keys (tiled)
  int chunks;  // of a head's keys (tiled): with several of them each is a phase, between which rows keep their states
  int round_tasks;  // with several chunks: tasks that go through them together
  int split_keys;   // keys of a split, a multiple of block_keys (direct)
  int splits;       // key splits a kv head; more than 1 adds a merging phase (direct)
  int wide_dim;     // floats of a key or value that is widened first; 0 where they are floats already
  int padded_dim;   // value_dim rounded up to the panel: row stride of the accumulators
  std::int64_t tasks;
};

AttentionPlan PlanAttention(const AttentionShape& shape, const KernelGeometry& kernels);

inline constexpr int kMostSumRows = 64;

// For the scores' maxima and sums alone, without values, tiled whatever the shape; at most
// kMostSumRows rows a task.
AttentionPlan PlanRowSums(const AttentionShape& shape, const KernelGeometry& kernels);

// Rows that a task fills with `size` zeros each.
std::int64_t RowsToFill(std::int32_t size);

}  // namespace headwise
