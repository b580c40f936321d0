// Public: scaled dot-product attention, backward. From dO to the gradients of everything that has one, in the flash manner
// (Dao et al., "FlashAttention", 2022, section 3.1 and appendix B): the weights are recomputed tile by tile from the
// forward pass' log-sum-exp, so that no L x S matrix is ever held.
//
//   P_ij = exp(s_ij - lse_i)        (with a sink, lse_i is that of the keys' scores and the sink)
//   dV_j = sum_i Z_ij P_ij dO_i     (Z: dropout's factor)
//   dS_ij = P_ij (Z_ij dO_i . V_j - delta_i),  delta_i = dO_i . O_i
//   dBias = dS summed to the bias' own shape;  dSink_h = -sum_i exp(sink_h - lse_i) delta_i
//   dQ_i = scale sum_j c_ij dS_ij K_j,  dK_j = scale sum_i c_ij dS_ij Q_i,  c_ij = 1 - tanh^2 of the softcap, else 1
//
// Where a log-sum-exp is so large that float32 rounds what matters away, the row's maximum and sum are formed anew from the
// scores: weights agree with the forward pass' for every finite score. A row that sees one key gives its queries and keys
// gradients of exactly 0.
//
// A hidden key is selected away, as in the forward pass: its gradients are exactly 0, whatever it holds. A row without a
// visible key gives nothing to anybody.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call.
struct AttentionBackwardArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/attention_backward_args.def"  // its fields and what they mean
};

Status CheckAttentionBackward(const AttentionBackwardArgs& args);

// Bytes of working memory in each thread, and for the whole job: O(B H L + tiles); with a bias that is broadcast along
// queries or keys, O(L + S).
AttentionMemory AttentionBackwardWorkingMemory(const AttentionBackwardArgs& args);

// A call in progress, as AttentionForward.
class AttentionBackward {
 public:
  AttentionBackward() = default;
  ~AttentionBackward();
  AttentionBackward(const AttentionBackward&) = delete;
  AttentionBackward& operator=(const AttentionBackward&) = delete;

  Status Prepare(const AttentionBackwardArgs& args, ThreadPool& pool, Job& job);

 private:
  struct Call;
  Call* call_ = nullptr;
};

// Prepare and run at once.
Status RunAttentionBackward(const AttentionBackwardArgs& args, ThreadPool& pool);

// The oracle: the formulas above in double, one row at a time on one thread, from the weights as the plain formula gives
// them; `out` and `log_sum_exp` are not looked at. Holds dk and dv, and d_bias, in double.
Status AttentionBackwardReference(const AttentionBackwardArgs& args);

}  // namespace headwise
