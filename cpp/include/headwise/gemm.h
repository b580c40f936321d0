// Public: matrix products against weights that are packed once. C = A W (+ bias), all float32, row-major.
#pragma once

#include <cstdint>

#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// A weight matrix [rows, columns] in the order in which the kernels read it: panels of adjacent columns, each panel
// row after row, the last one padded with zeros. Owns its memory.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  ~PackedMatrix();
  PackedMatrix(PackedMatrix&& other) noexcept;
  PackedMatrix& operator=(PackedMatrix&& other) noexcept;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  // Element (r, c) is read at source[r * row_stride + c * column_stride].
  Status Pack(const float* source, std::int32_t rows, std::int32_t columns, std::int64_t row_stride,
              std::int64_t column_stride);
  // The same in two steps, so that the panels can be filled by tasks: memory for a matrix of this size (kept when it is
  // that size already), and then each of its panels, 0 ... panel_count() - 1, or `rows` of one from first_row on, where
  // `source` is the first of them.
  Status Reserve(std::int32_t rows, std::int32_t columns);
  void PackPanel(std::int64_t panel, const float* source, std::int64_t row_stride, std::int64_t column_stride) {
    PackPanel(panel, source, row_stride, column_stride, 0, rows_);
  }
  void PackPanel(std::int64_t panel, const float* source, std::int64_t row_stride, std::int64_t column_stride,
                 std::int32_t first_row, std::int32_t rows);
  std::int64_t panel_count() const;
  // Writes element (r, c) to target[r * columns + c].
  void Unpack(float* target) const;

  std::int32_t rows() const { return rows_; }
  std::int32_t columns() const { return columns_; }
  const float* panels() const { return panels_; }

 private:
  float* panels_ = nullptr;
  std::int32_t rows_ = 0;
  std::int32_t columns_ = 0;
};

// One product C[m,n] = A[m,k] W[k,n] (+ bias[n]) (+ C when `accumulate`). Row r of A is at a + r * a_row_stride, row r
// of C at c + r * c_row_stride. Must outlive the job that it was added to.
struct GemmArgs {
  std::int32_t m = 0;
  const float* a = nullptr;
  std::int64_t a_row_stride = 0;
  const PackedMatrix* w = nullptr;
  const float* bias = nullptr;  // [n] or null; ignored when accumulating
  float* c = nullptr;
  std::int64_t c_row_stride = 0;
  bool accumulate = false;
};

// Adds the product to `job` as one phase. Every element is the sum over k in ascending order, in blocks fixed by the
// shape, so results do not depend on the thread count.
Status AddGemm(const GemmArgs& args, Job& job);

// The same, at once.
Status Gemm(const GemmArgs& args, ThreadPool& pool);

}  // namespace headwise
