// Public: scaled dot-product attention, forward. O = softmax(mask(softcap(scale * Q K^T) + bias)) V for every batch and
// head, in tiles with an online softmax (Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018), so that no L x S matrix is ever held.
//
// Letters: B batch, H query heads, G key/value heads, L queries, S keys, D query/key size, Dv value size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Where element (b, h, i, 0) of a tensor lies: data[b * batch + h * head + i * row]; the last axis is contiguous.
// Counted in elements. 'bhld' is {H*L*D, L*D, D}, 'blhd' is {L*H*D, D, H*D}.
struct Strides {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/strides.def"  // its fields and what they mean
};

// Strides of something broadcast to [B,H,L,S]; 0 along an axis that is broadcast, `column` 0 or 1.
struct BroadcastStrides {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/broadcast_strides.def"  // its fields and what they mean
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
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/attention_args.def"  // its fields and what they mean
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
