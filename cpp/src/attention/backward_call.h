// Attention driver: what the tasks of one backward call share, and how a thread's working memory is laid out.
#pragma once

#include <cstdint>

#include "attention/backward_plan.h"
#include "attention/call.h"
#include "headwise/attention_backward.h"

namespace headwise {

// How the gradient of the bias is summed. One that varies along queries and keys is added where it lies: a task owns its
// rows and columns, and what it shares over batches or heads comes in later phases. The others are first summed for each
// head, and joined at the end.
enum class BiasSums : std::int32_t {
  kNone,
  kInPlace,
  kOfRows,     // one for each query
  kOfColumns,  // one for each key
};

// How the rows of all batch entries and heads lie: [B,H,L], or [H,T] for packed sequences with T rows altogether.
struct BackwardRows {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::uint64_t count = 0;
  BackwardRows() = default;
  explicit BackwardRows(const AttentionArgs& a);
};

struct AttentionBackwardCall {
  AttentionBackwardArgs args;
  AttentionBackwardPlan plan;
  AttentionCall forward;  // for scores: its kernels and pool
  AttentionCall sums;     // the same without values and dropout, for the rows' maxima and sums
  BackwardRows row_strides;
  float* shift;  // [B,H,L] log-sum-exp with the sink; +infinity where no key is visible
  float* delta;  // [B,H,L] dO . O
  // [B,H,L] -1; or, for all rows of a block some of whose log-sum-exps say too little, what exp(score - shift) is multiplied
  // by to be the weight (0 ... 1, or NaN). The shift is the row's maximum then.
  float* factor;
  float* sink_weights;  // [B,H,L], where sinks have a gradient
  float* bias_sums;     // [B,H,L] or [B,H,S]
  BiasSums bias_mode;
  float* zeros;  // what is summed into: filled with zeros first
  std::int64_t zero_count;

  const AttentionArgs& attention() const { return args.attention; }
  // Whether a row's shift is its maximum.
  bool Exact(std::int64_t row) const { return !(factor[row] < 0.0F); }
  // Where a row's shift and delta lie.
  std::int64_t Row(std::int32_t b, std::int32_t h, std::int32_t i) const {
    return b * row_strides.batch + h * row_strides.head + forward.FirstQuery(b) + i;
  }
};

// The context of one phase of tile tasks: which pairs of chunks, and of which batches and key/value heads.
struct AttentionBackwardPhase {
  AttentionBackwardCall* call;
  std::int32_t rotation;
  std::int32_t first_batch, batches;
  std::int32_t first_kv_head, kv_heads;
};

// Tasks. Contexts are the call, for the tile task an AttentionBackwardPhase.
void BackwardStartTask(void* call, std::int64_t index, int thread);  // kZerosOfTask zeros where sums begin
void BackwardRowsTask(void* call, std::int64_t index, int thread);   // (batch, head, delta_rows): shift and delta
void BackwardSumsTask(void* call, std::int64_t index, int thread);   // of `sums`: shift and factor
void BackwardTileTask(void* phase, std::int64_t index, int thread);  // (batch, kv head, chunks)
void BackwardSinksTask(void* call, std::int64_t index, int thread);  // (head)
void BackwardBiasTask(void* call, std::int64_t index, int thread);   // one: what bias_sums holds

inline constexpr std::int64_t kZerosOfTask = std::int64_t{1} << 20;
inline std::int64_t ZeroTasks(std::int64_t count) { return (count + kZerosOfTask - 1) / kZerosOfTask; }

// Gradients that are 0 whatever the inputs: rows of dq, dk or dv. The context of phases of row tasks.
struct GradientZeros {
  float* to;
  Strides strides;
  const std::int32_t* starts;   // packed sequences
  const std::int32_t* lengths;  // and how long they are
  std::int32_t heads, rows, size;

  std::int64_t TasksOfHead() const;
};
void GradientZerosTask(void* zeros, std::int64_t index, int thread);  // (batch, head, rows)

// Elements of d_bias along an axis of size `size`.
constexpr std::int32_t BiasExtent(std::int32_t stride, std::int32_t size) { return stride == 0 ? 1 : size; }

// One thread's working memory, as AttentionScratch. Panels: [column / panel][row][column % panel].
struct AttentionBackwardScratch {
  float* keys_transposed;    // K^T in panels of keys: right side of scores
  float* values_transposed;  // V^T, likewise
  float* keys;           // K in panels of its columns, each block for itself: right side of dQ; NaN and infinities 0
  float* dk_transposed;  // dK^T in panels of keys
  float* dv_transposed;
  float* queries;             // [block_rows, D], scaled
  float* queries_transposed;  // [D, block_rows], not scaled; NaN and infinities 0
  float* d_out_transposed;    // [Dv, block_rows], likewise
  float* scores;              // a tile in panels of keys: scores, then weights
  float* d_scores;            // the same: dO V^T, then gradients
  float* d_scores_rows;       // [block_rows, block_keys]
  float* capped;              // a panel: capped scores before the bias
  float* dropout;             // a panel: factors
  std::uint8_t* visible;      // a panel
  float* dq;                  // [block_rows, padded_dim]
  std::uint64_t bytes;

  AttentionBackwardScratch(const AttentionBackwardPlan& plan, std::int32_t head_dim, std::int32_t value_dim, int panel,
                           void* block) {
    Carver carver(block);
    carver.Take<std::uint8_t>(ThreadPool::kScratchHeader);  // the pool's
    const auto part = static_cast<std::uint64_t>(plan.part_keys);
    const auto rows = static_cast<std::uint64_t>(plan.block_rows);
    const auto d = static_cast<std::uint64_t>(head_dim);
    const auto dv = static_cast<std::uint64_t>(value_dim);
    const std::uint64_t tile = rows * static_cast<std::uint64_t>(plan.block_keys);
    const std::uint64_t one_panel = rows * static_cast<std::uint64_t>(panel);
    keys_transposed = carver.Take<float>(CheckedMul(part, d));
    values_transposed = carver.Take<float>(CheckedMul(part, dv));
    keys = carver.Take<float>(CheckedMul(part, static_cast<std::uint64_t>(plan.padded_dim)));
    dk_transposed = carver.Take<float>(CheckedMul(part, d));
    dv_transposed = carver.Take<float>(CheckedMul(part, dv));
    queries = carver.Take<float>(CheckedMul(rows, d));
    queries_transposed = carver.Take<float>(CheckedMul(rows, d));
    d_out_transposed = carver.Take<float>(CheckedMul(rows, dv));
    scores = carver.Take<float>(tile);
    d_scores = carver.Take<float>(tile);
    d_scores_rows = carver.Take<float>(tile);
    capped = carver.Take<float>(one_panel);
    dropout = carver.Take<float>(one_panel);
    visible = carver.Take<std::uint8_t>(one_panel);
    dq = carver.Take<float>(CheckedMul(rows, static_cast<std::uint64_t>(plan.padded_dim)));
    bytes = carver.used();
  }
};

}  // namespace headwise
