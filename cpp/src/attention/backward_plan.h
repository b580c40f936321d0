// Plan: from the shape of a backward call to its tiles, chunks and phases. Pure, as plan.h.
//
// A key/value head's queries and keys are both cut into chunks. In phase p, task t takes chunk t of the side that has fewer of
// them and chunk (t + p) mod `phases` of the other: no two tasks of a phase share either, so each adds to dq, dk and dv where
// they lie, and every sum has one order, whatever the threads. (Key blocks and query blocks in two passes would be as free of conflicts and compute
// scores and dO V^T twice: 7 products for 5. Partial sums of dq for each key chunk would cost chunks * L * D floats.)
#pragma once

#include <cstdint>

#include "attention/plan.h"

namespace headwise {

// Keys of a tile at most (128 gain nothing), and panels of them: no kernel's panel is narrower than 8.
inline constexpr int kMostBackwardKeys = 64;
inline constexpr int kMostBackwardPanels = kMostBackwardKeys / 8;

struct AttentionBackwardPlan {
  int block_rows;  // rows of a tile
  int block_keys;  // keys of a tile, a multiple of the panel
  int row_chunks;
  int key_chunks;
  int chunk_rows;  // a multiple of block_rows
  int chunk_keys;  // a multiple of block_keys
  int part_keys;   // keys packed at a time, a multiple of block_keys
  int padded_dim;  // head_dim rounded up to the panel
  int delta_rows;  // rows of a task of the first phase, a multiple of block_rows

  int phases() const { return row_chunks > key_chunks ? row_chunks : key_chunks; }
  int tasks() const { return row_chunks > key_chunks ? key_chunks : row_chunks; }  // of a phase and key/value head

  // The chunks of a task, and whether it is the first that comes to each.
  struct Chunks {
    int rows, keys;
    bool first_of_rows, first_of_keys;
  };
  Chunks ChunksOf(int phase, int task) const;
};

AttentionBackwardPlan PlanAttentionBackward(const AttentionShape& shape, const KernelGeometry& kernels);

}  // namespace headwise
