// Public: matrix products of two matrices that are both new at every run, as training has them: C = A B (+ bias), with
// either side transposed by its strides. Float32; C is row-major.
#pragma once

#include <cstdint>

#include "headwise/gemm.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Element (r, c) lies at data[r * row + c * column].
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

struct ProductArgs {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  MatrixView a;                 // [m, k]
  MatrixView b;                 // [k, n]
  const float* bias = nullptr;  // [n] or null; ignored when accumulating
  float* c = nullptr;           // [m, n], overlaps no input
  std::int64_t c_row_stride = 0;
  bool accumulate = false;  // C += A B
};

// Prepare adds two or three phases to `job`: B is packed, A copied where its columns are not adjacent, and the product is
// computed. What `a`, `b` and `bias` point at is read when the phases run, so it may be written by earlier ones. The object
// outlives the job and does not move. Results do not depend on the thread count.
class Product {
 public:
  Product() = default;
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  Status Prepare(const ProductArgs& args, Job& job);

 private:
  static void PackTask(void* context, std::int64_t index, int thread);
  static void CopyTask(void* context, std::int64_t index, int thread);

  ProductArgs args_;
  PackedMatrix packed_;
  float* rows_ = nullptr;  // A with adjacent columns
  GemmArgs gemm_;
};

// Prepare and run at once.
Status MatrixProduct(const ProductArgs& args, ThreadPool& pool);

}  // namespace headwise
