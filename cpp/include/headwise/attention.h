// Public: scaled dot-product attention, forward. O = softmax(mask(softcap(scale * Q K^T) + bias)) V for every batch and
// head, in tiles with an online softmax (Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018), so that no L x S matrix is ever held.
//
// Letters: B batch, H query heads, G key/value heads, L queries, S keys, D query/key size, Dv value size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Where element (b, h, i, 0) of a tensor lies: data[b * batch + h * head + i * row]; the last axis is contiguous.
// Counted in elements. 'bhld' is {H*L*D, L*D, D}, 'blhd' is {L*H*D, D, H*D}.
struct Strides {
  std::int32_t batch = 0;
  std::int32_t head = 0;
  std::int32_t row = 0;
};

// Strides of something broadcast to [B,H,L,S]; 0 along an axis that is broadcast, `column` 0 or 1.
struct BroadcastStrides {
  std::int32_t batch = 0;
  std::int32_t head = 0;
  std::int32_t row = 0;
  std::int32_t column = 0;
};

enum class ScoreKind : std::int32_t {
  kDot = 0,       // scale * sum_d q_d k_d
  kAdditive = 1,  // scale * sum_d a_d tanh(q_d + k_d)  (Bahdanau et al., 2015), a = additive_weights of the head
};

// What keys and values are made of. A kInt8 row (one head's key or value of one token) has a factor of its own.
enum class CellType : std::int32_t {
  kFloat32 = 0,
  kFloat16 = 1,  // IEEE binary16
  kInt8 = 2,     // -127 ... 127, times the row's factor
};

enum class ScoreStage : std::int32_t {
  kNone = 0,
  kRaw = 1,         // scaled
  kSoftcapped = 2,  // and softcapped
  kMasked = 3,      // and biased and masked: -infinity where hidden
};

// All pointers are borrowed for the length of the call; inputs are never written. A null pointer means "not given".
// Fixed-width fields only: the binding publishes their offsets and JavaScript fills the struct in place.
struct AttentionArgs {
  std::int32_t batch = 0;      // B
  std::int32_t heads = 0;      // H, a multiple of kv_heads
  std::int32_t kv_heads = 0;   // G; query head h reads key/value head h / (H / G)
  std::int32_t queries = 0;    // L
  std::int32_t keys = 0;       // S
  std::int32_t head_dim = 0;   // D
  std::int32_t value_dim = 0;  // Dv

  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;  // [B,H,L,Dv] through out_strides
  Strides q_strides;
  Strides k_strides;
  Strides v_strides;
  Strides out_strides;

  ScoreKind score_kind = ScoreKind::kDot;
  const float* additive_weights = nullptr;  // [H,D], with kAdditive
  float scale = 1.0F;
  float softcap = 0.0F;  // 0: none; else score <- softcap * tanh(score / softcap)

  const float* bias = nullptr;  // added after the softcap; -infinity hides, any finite value does not
  BroadcastStrides bias_strides;
  const std::uint8_t* mask = nullptr;  // nonzero: may be attended to
  BroadcastStrides mask_strides;
  const std::uint8_t* key_padding_mask = nullptr;  // [B,S], nonzero: a real token

  const std::int32_t* kv_lengths = nullptr;      // [B], 0 ... S; default S
  const std::int32_t* q_lengths = nullptr;       // [B], 0 ... L; default L; rows past the end come out 0
  std::int32_t causal = 0;                       // key j visible to query i iff j <= i + offset
  const std::int32_t* causal_offsets = nullptr;  // [B]; default kv_length - q_length
  std::int32_t window_left = -1;                 // keys i + offset - left ... i + offset + right; -1: open
  std::int32_t window_right = -1;

  const float* alibi_slopes = nullptr;  // [H]: adds -slope * |i + offset - j|
  const float* sinks = nullptr;         // [H]: one more logit in the denominator, without a value

  float dropout_rate = 0.0F;  // 0 ... 1; kept weights are scaled by 1 / (1 - rate)
  std::uint32_t dropout_seed_low = 0;
  std::uint32_t dropout_seed_high = 0;

  float* weights = nullptr;                    // [B, n, L, S]: after the softmax, before dropout
  const std::int32_t* weight_heads = nullptr;  // [n] heads to return; null: all, n = H
  std::int32_t weight_head_count = 0;
  float* scores = nullptr;  // [B,H,L,S] at `score_stage`
  ScoreStage score_stage = ScoreStage::kNone;
  float* log_sum_exp = nullptr;  // [B,H,L]: natural logarithm, of the keys' scores alone (sinks are left out)
  Strides log_sum_exp_strides;   // all 0: contiguous

  // The mask's bytes hold eight elements each, lowest bit first; a row begins at a byte. Strides then count bytes,
  // but for `column`, 0 or 1.
  std::int32_t mask_bits = 0;

  // Block-sparse: query i may see key j only if column j / size is listed for row i / size. Compressed rows: those of
  // row block r are columns[rows[r]] ... columns[rows[r + 1] - 1], ascending. 0: none.
  std::int32_t block_size = 0;
  const std::int32_t* block_rows = nullptr;     // [ceil(L / size) + 1]
  const std::int32_t* block_columns = nullptr;  // each below ceil(S / size)

  // Packed sequences: batch entry b's rows begin that many rows after where the batch stride says (which is 0 then).
  // Both or neither; lengths say where they end, and nothing outside is read or written. Queries and keys are the
  // longest ones. Without mask, bias, padding mask, block mask, weights and scores.
  const std::int32_t* q_starts = nullptr;  // [B]; the log-sum-exp goes by them as well
  const std::int32_t* k_starts = nullptr;  // [B]

  // Keys and values that are no floats: k and v then point at cells of this type, and strides count cells.
  CellType cell_type = CellType::kFloat32;
  const float* k_scales = nullptr;  // kInt8: the factor of each row, through scale_strides
  const float* v_scales = nullptr;
  Strides scale_strides;

  // A ring of keys: `keys` slots, of which the first sink_tokens hold the first tokens for ever, and a token at
  // position p behind them lies in slot sink_tokens + (p - sink_tokens) mod ring_size. Causality, windows and ALiBi go
  // by positions; the first sink_tokens are inside every window. Needs causal_offsets. 0: slots are positions.
  std::int32_t ring_size = 0;
  std::int32_t sink_tokens = 0;
  const std::int32_t* ring_totals = nullptr;  // [B]: tokens so far; the last kv_lengths[b] of the slots' are there
};

// Sizes, strides and pointers that fit together? Values of masks, bias and tensors are not looked at.
Status CheckAttention(const AttentionArgs& args);

// Bytes of working memory that a call needs in each thread, and for the whole job.
struct AttentionMemory {
  std::uint64_t per_thread = 0;
  std::uint64_t shared = 0;
};
AttentionMemory AttentionWorkingMemory(const AttentionArgs& args);

// A call in progress: Prepare, then Run until it returns true. The object holds the plan and what the tasks share; it
// must outlive the run and not move. Any number may be prepared at once over one pool, their slices in any order.
class AttentionForward {
 public:
  AttentionForward() = default;
  ~AttentionForward();
  AttentionForward(const AttentionForward&) = delete;
  AttentionForward& operator=(const AttentionForward&) = delete;

  // Checks, plans and allocates; adds the phases to `job`. kOutOfMemory leaves nothing behind.
  Status Prepare(const AttentionArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Call;
  static constexpr std::size_t kCallBytes = 640;
  alignas(std::max_align_t) std::byte place_[kCallBytes];  // the call's, so that a tiny one allocates nothing
  Call* call_ = nullptr;
};

// Prepare and run at once.
Status Attention(const AttentionArgs& args, ThreadPool& pool);

// The oracle: the same semantics by the plain formula, every intermediate in double, one row at a time on one thread.
// Slow on purpose, kept for ever. Holds one row of S doubles. Takes no cells other than floats.
Status AttentionReference(const AttentionArgs& args);

}  // namespace headwise
