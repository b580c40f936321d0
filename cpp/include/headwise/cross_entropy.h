// Public: softmax cross-entropy over classes with label smoothing (Szegedy et al., 2016) and ignored targets, forward and
// backward in one. The caller shifts: row r's target is the class that row r is to predict.
//
//   loss_r = -sum_c q_c log p_c,  p = softmax(logits_r),  q = (1 - smoothing) onehot(target_r) + smoothing / V
//   loss = mean of loss_r over the rows that are not ignored; dLogits_r = (p - q) / their number, or another divisor
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// All pointers are borrowed for the length of the call.
struct CrossEntropyArgs {
  std::int32_t rows = 0;
  std::int32_t classes = 0;               // V, at least 1 when there are rows
  float smoothing = 0.0F;                 // 0 ... 1
  std::int32_t ignored = -1;              // rows with this target count for nothing: padding
  const float* logits = nullptr;          // [rows, V]
  const std::int32_t* targets = nullptr;  // [rows], each `ignored` or 0 ... V - 1
  float* row_loss = nullptr;              // [rows]: 0 where ignored
  std::uint8_t* row_correct = nullptr;    // [rows]: 1 where the target is on top
  float* d_logits = nullptr;              // [rows, V], null: not wanted; may be logits
  std::int32_t divisor = 0;               // of the sum over rows, for a part of a larger batch; 0: the rows that count
};

struct CrossEntropyResult {
  double loss = 0.0;         // sum by divisor; 0 when every row is ignored
  std::int32_t counted = 0;  // rows that are not ignored
  std::int32_t correct = 0;  // of those, how many have their target on top (the lowest class of several equal ones)
};

// Two phases. The object outlives the job and does not move.
class CrossEntropyLoss {
 public:
  CrossEntropyLoss() = default;
  CrossEntropyLoss(const CrossEntropyLoss&) = delete;
  CrossEntropyLoss& operator=(const CrossEntropyLoss&) = delete;

  // Targets are looked at here: one out of range is kInvalidValue "targets". A NaN among a counted row's logits makes the
  // loss NaN.
  Status Prepare(const CrossEntropyArgs& args, Job& job);
  // Once the job is done.
  const CrossEntropyResult& result() const { return result_; }

 private:
  static void Rows(void* context, std::int64_t index, int thread);
  static void Sum(void* context, std::int64_t index, int thread);
  void Row(std::int64_t row) const;

  std::int32_t divisor() const { return args_.divisor > 0 ? args_.divisor : result_.counted; }

  CrossEntropyArgs args_;
  CrossEntropyResult result_;
};

Status CrossEntropy(const CrossEntropyArgs& args, CrossEntropyResult& result, ThreadPool& pool);

}  // namespace headwise
