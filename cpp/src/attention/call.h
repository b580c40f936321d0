// Attention driver: what the tasks of one call share, and how a thread's working memory is laid out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/plan.h"
#include "headwise/attention.h"
#include "kernels/dropout.h"
#include "kernels/kernel_table.h"
#include "memory/carver.h"

namespace headwise {

inline constexpr double kLog2e = 1.4426950408889634074;
inline constexpr double kLn2 = 0.69314718055994530942;

// What a score in units of ln 2, or a natural one, is multiplied by to be natural.
constexpr double UnitOf(bool log2) { return log2 ? kLn2 : 1.0; }

struct AttentionCall {
  AttentionArgs args;
  AttentionPlan plan;
  const kernels::KernelTable* kernels;
  ThreadPool* pool;
  std::uint64_t job;      // this call's name at the pool
  bool only_masks;        // nothing else comes between product and softmax
  float lift;             // weights are exp(score - max) * 2^-lift, see SoftmaxTile
  double unlift;          // 2^lift
  const float* additive;  // [H,D], scale folded in (additive scores)
  float* partials;        // direct with splits: states of all rows and splits
  std::byte* states;      // tiled in several chunks: states of the rows of a round

  // Scores are natural, or in units of ln 2: queries then carry the factor log2(e), which saves one for every score.
  float QueryScale(bool log2) const {
    if (args.score_kind == ScoreKind::kAdditive) return 1.0F;
    return log2 ? static_cast<float>(args.scale * kLog2e) : args.scale;
  }
  std::int32_t group() const { return args.heads / args.kv_heads; }
  // Rows and keys of a batch entry that may be touched at all: packed sequences end where the next one begins.
  std::int32_t Queries(std::int32_t b) const { return args.q_starts == nullptr ? args.queries : args.q_lengths[b]; }
  std::int32_t Keys(std::int32_t b) const { return args.k_starts == nullptr ? args.keys : args.kv_lengths[b]; }
  const float* Query(std::int32_t b, std::int32_t h, std::int32_t i) const { return args.q + QueryOffset(b, h, i); }
  std::int64_t QueryOffset(std::int32_t b, std::int32_t h, std::int32_t i) const {
    return Offset(args.q_strides, b, h, i + Start(args.q_starts, b));
  }
  // In cells of args.cell_type.
  std::int64_t KeyOffset(std::int32_t b, std::int32_t g, std::int32_t j) const {
    return Offset(args.k_strides, b, g, j + Start(args.k_starts, b));
  }
  std::int64_t ValueOffset(std::int32_t b, std::int32_t g, std::int32_t j) const {
    return Offset(args.v_strides, b, g, j + Start(args.k_starts, b));
  }
  std::int64_t ScaleOffset(std::int32_t b, std::int32_t g, std::int32_t j) const {
    return Offset(args.scale_strides, b, g, j + Start(args.k_starts, b));
  }
  float* Output(std::int32_t b, std::int32_t h, std::int32_t i) const { return args.out + OutputOffset(b, h, i); }
  std::int64_t OutputOffset(std::int32_t b, std::int32_t h, std::int32_t i) const {
    return Offset(args.out_strides, b, h, i + Start(args.q_starts, b));
  }
  float* LogSumExp(std::int32_t b, std::int32_t h, std::int32_t i) const {
    if (args.log_sum_exp == nullptr) return nullptr;
    const Strides& s = args.log_sum_exp_strides;
    const Strides contiguous = {args.heads * args.queries, args.queries, 1};
    return args.log_sum_exp + Offset(s.row == 0 ? contiguous : s, b, h, i + Start(args.q_starts, b));
  }
  // Rows of [B,H,L,S] outputs.
  float* Scores(std::int32_t b, std::int32_t h, std::int32_t i) const {
    return args.scores + ((std::int64_t{b} * args.heads + h) * args.queries + i) * args.keys;
  }
  // Null when the weights of this head are not asked for.
  float* Weights(std::int32_t b, std::int32_t h, std::int32_t i) const {
    if (args.weights == nullptr) return nullptr;
    std::int32_t slot = h;
    std::int32_t count = args.heads;
    if (args.weight_heads != nullptr) {
      count = args.weight_head_count;
      for (slot = 0; slot < count && args.weight_heads[slot] != h;) ++slot;
      if (slot == count) return nullptr;
    }
    return args.weights + ((std::int64_t{b} * count + slot) * args.queries + i) * args.keys;
  }
  // Where packed sequence b begins; 0 without them.
  std::int32_t FirstQuery(std::int32_t b) const { return Start(args.q_starts, b); }
  void* Scratch(int thread) const { return pool->Scratch(thread, job); }
  kernels::Dropout dropout() const {
    return kernels::Dropout(args.dropout_rate, args.dropout_seed_low, args.dropout_seed_high);
  }

 private:
  static std::int32_t Start(const std::int32_t* starts, std::int32_t b) { return starts == nullptr ? 0 : starts[b]; }
  static std::int64_t Offset(const Strides& s, std::int32_t b, std::int32_t h, std::int32_t i) {
    return std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
  }
};

// The parts of a call that depend on its arguments and the pool alone: all but the plan, and what lies in its own memory.
void StartCall(const AttentionArgs& args, ThreadPool& pool, AttentionCall* call);

// The online softmax's state of a run of rows.
struct RowStates {
  float* max;      // [rows]; the first of all, see AttentionScratch
  float* sums;     // [rows, lanes]
  float* rescale;  // [rows]
  float* acc;      // [rows, padded_dim]
};

// What stands at the head of a thread's scratch, where the pool writes zeros when another job had it in between.
struct PackedHeader {
  std::int64_t head_chunk;  // which chunk of which key/value head lies packed behind it, counted from 1; 0: none
};
static_assert(sizeof(PackedHeader) <= ThreadPool::kScratchHeader);

// One thread's working memory. Built twice from the same walk: over null to measure, over the block to use.
struct AttentionScratch {
  PackedHeader* header;
  float* keys;  // packed chunk, or unused when direct
  float* values;
  std::uint8_t* block_state;  // a packed block: absent, finite, or with NaN or infinities among its values
  float* key_norms;           // of a packed block: its keys' largest norm, infinite where its values are large
  float* queries;             // [block_rows, D], scaled
  float* query_norms;         // [block_rows]
  float* scores;              // [block_rows, block_keys]
  std::uint8_t* visible;      // [block_rows, block_keys]
  float* hidden;              // [block_keys]: what masks make of a row of zeros
  float* norms;               // [block_keys]: of the keys, where they are looked at one by one
  float* wide;                // [block_keys, wide_dim]: keys or values that are no floats, widened
  RowStates rows;
  std::uint8_t* natural;      // [block_rows]: whether a row's scores are natural by now
  std::uint64_t state_bytes;  // of rows and natural, which lie one after another
  std::uint64_t bytes;

  AttentionScratch(const AttentionPlan& plan, std::int32_t head_dim, int lanes, void* block) {
    Carver carver(block);
    header = carver.Take<PackedHeader>(1);
    const auto chunk = static_cast<std::uint64_t>(plan.direct ? 0 : plan.chunk_keys);
    const auto tile_rows = static_cast<std::uint64_t>(plan.block_rows);
    const auto padded_dim = static_cast<std::uint64_t>(plan.padded_dim);
    const auto tile = tile_rows * static_cast<std::uint64_t>(plan.block_keys);
    keys = carver.Take<float>(CheckedMul(chunk, static_cast<std::uint64_t>(head_dim)));
    values = carver.Take<float>(CheckedMul(chunk, padded_dim));
    const auto blocks = chunk / static_cast<std::uint64_t>(plan.block_keys) + 1;
    block_state = carver.Take<std::uint8_t>(blocks);
    key_norms = carver.Take<float>(blocks);
    queries = carver.Take<float>(CheckedMul(tile_rows, static_cast<std::uint64_t>(head_dim)));
    query_norms = carver.Take<float>(tile_rows);
    scores = carver.Take<float>(tile);
    visible = carver.Take<std::uint8_t>(tile);
    hidden = carver.Take<float>(static_cast<std::uint64_t>(plan.block_keys));
    norms = carver.Take<float>(static_cast<std::uint64_t>(plan.block_keys));
    wide = carver.Take<float>(
        CheckedMul(static_cast<std::uint64_t>(plan.block_keys), static_cast<std::uint64_t>(plan.wide_dim)));
    const std::uint64_t before = carver.used();
    rows.max = carver.Take<float>(tile_rows);
    rows.sums = carver.Take<float>(tile_rows * static_cast<std::uint64_t>(lanes));
    rows.rescale = carver.Take<float>(tile_rows);
    rows.acc = carver.Take<float>(CheckedMul(tile_rows, padded_dim));
    natural = carver.Take<std::uint8_t>(tile_rows);
    state_bytes = carver.used() - before;
    bytes = carver.used();
  }
};

}  // namespace headwise
