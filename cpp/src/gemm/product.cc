// Driver: a product of two plain matrices: phases that pack, then the one of gemm.cc.
#include "headwise/product.h"

#include <algorithm>

#include "kernels/kernel_table.h"
#include "memory/aligned.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

// Rows of A that a task copies, and how many at a time: a cache line of each of A's columns.
constexpr std::int64_t kCopyRows = 64;
constexpr std::int64_t kSlab = 16;

// From row to row of the copy: an odd number of cache lines, so that rows do not contend for the same places in the cache.
std::int64_t CopyStride(std::int64_t k) { return ((k + kSlab - 1) / kSlab | 1) * kSlab; }

}  // namespace

Product::~Product() { FreeAligned(rows_); }

Status Product::Prepare(const ProductArgs& args, Job& job) {
  if (args.m < 0 || args.n < 0 || args.k < 0) return Status::InvalidShape("m");
  if (args.m == 0 || args.n == 0) return Status::Ok();
  if (args.k > 0 && (args.a.data == nullptr || args.b.data == nullptr)) return Status::InvalidValue("a");
  if (args.c == nullptr) return Status::InvalidValue("c");
  args_ = args;
  if (Status status = packed_.Reserve(args.k, args.n); !status.ok()) return status;
  if (Status status = job.AddPhase(packed_.panel_count(), &PackTask, this); !status.ok()) return status;
  gemm_ = GemmArgs{};
  gemm_.a = args.a.data;
  gemm_.a_row_stride = args.a.row;
  if (args.a.column != 1 && args.k > 0) {
    const std::int64_t stride = CopyStride(args.k);
    const std::uint64_t bytes =
        CheckedMul(CheckedMul(static_cast<std::uint64_t>(args.m), static_cast<std::uint64_t>(stride)), sizeof(float));
    FreeAligned(rows_);
    rows_ = static_cast<float*>(AllocateAligned(bytes));
    if (rows_ == nullptr) return Status::OutOfMemory(bytes);
    gemm_.a = rows_;
    gemm_.a_row_stride = stride;
    if (Status status = job.AddPhase((args.m + kCopyRows - 1) / kCopyRows, &CopyTask, this); !status.ok())
      return status;
  }
  gemm_.m = args.m;
  gemm_.w = &packed_;
  gemm_.bias = args.bias;
  gemm_.c = args.c;
  gemm_.c_row_stride = args.c_row_stride;
  gemm_.accumulate = args.accumulate;
  return AddGemm(gemm_, job);
}

void Product::PackTask(void* context, std::int64_t index, int /*thread*/) {
  auto& self = *static_cast<Product*>(context);
  self.packed_.PackPanel(index, self.args_.b.data, self.args_.b.row, self.args_.b.column);
}

void Product::CopyTask(void* context, std::int64_t index, int /*thread*/) {
  auto& self = *static_cast<Product*>(context);
  const MatrixView& a = self.args_.a;
  const std::int64_t k = self.args_.k;
  const std::int64_t stride = CopyStride(k);
  const std::int64_t end = std::min<std::int64_t>(self.args_.m, (index + 1) * kCopyRows);
  for (std::int64_t row = index * kCopyRows; row < end; row += kSlab) {
    const auto rows = static_cast<int>(std::min(end - row, kSlab));
    if (a.row == 1) {
      kernels::Kernels().transpose(a.data + row, a.column, self.args_.k, rows, self.rows_ + row * stride, stride);
      continue;
    }
    for (std::int64_t r = row; r < row + rows; ++r) {
      for (std::int64_t c = 0; c < k; ++c) self.rows_[r * stride + c] = a.data[r * a.row + c * a.column];
    }
  }
}

Status MatrixProduct(const ProductArgs& args, ThreadPool& pool) {
  Product product;
  return RunJob(pool, [&](Job& job) { return product.Prepare(args, job); });
}

}  // namespace headwise
