// Kernel: sums of columns over many rows, for the gradients of what all rows share: biases, gains, shifts.
//
// Contract: `sums` [columns] are doubles and added to. At most kRun rows are added up in float32 before, so that the error is
// at most (kRun + 3) * 2^-24 * sum |terms|, however many rows there are. Nothing outside is read.
#pragma once

#include <cstddef>

#include "simd/simd.h"

namespace headwise::kernels {

struct ColumnSums {
  using V = simd::Vector;
  static constexpr int kRun = 16;

  // sums[c] += sum over rows of x[row * stride + c].
  static void Run(const float* x, std::ptrdiff_t stride, std::ptrdiff_t rows, int columns, double* sums) {
    for (std::ptrdiff_t first = 0; first < rows; first += kRun, x += kRun * stride) {
      const int run = rows - first < kRun ? static_cast<int>(rows - first) : kRun;
      int c = 0;
      for (; c + simd::kLanes <= columns; c += simd::kLanes) {
        V sum = simd::Load(x + c);
        for (int r = 1; r < run; ++r) sum = sum + simd::Load(x + r * stride + c);
        AddLanes(sum, sums + c);
      }
      for (; c < columns; ++c) {
        float sum = x[c];
        for (int r = 1; r < run; ++r) sum += x[r * stride + c];
        sums[c] += sum;
      }
    }
  }

  // For normalised rows: sums[c] += sum over rows of g * (x - mean[row]) * inverse[row]; `mean` null: 0. Both have `stride`.
  static void RunNormalized(const float* g, const float* x, std::ptrdiff_t stride, std::ptrdiff_t rows, int columns,
                            const float* mean, const float* inverse, double* sums) {
    for (std::ptrdiff_t first = 0; first < rows; first += kRun, g += kRun * stride, x += kRun * stride) {
      const int run = rows - first < kRun ? static_cast<int>(rows - first) : kRun;
      const auto mean_of = [&](int r) { return mean == nullptr ? 0.0F : mean[first + r]; };
      int c = 0;
      for (; c + simd::kLanes <= columns; c += simd::kLanes) {
        V sum = simd::Splat(0.0F);
        for (int r = 0; r < run; ++r) {
          const V normal = (simd::Load(x + r * stride + c) - simd::Splat(mean_of(r))) * simd::Splat(inverse[first + r]);
          sum = simd::MulAdd(simd::Load(g + r * stride + c), normal, sum);
        }
        AddLanes(sum, sums + c);
      }
      for (; c < columns; ++c) {
        float sum = 0.0F;
        for (int r = 0; r < run; ++r)
          sum += g[r * stride + c] * ((x[r * stride + c] - mean_of(r)) * inverse[first + r]);
        sums[c] += sum;
      }
    }
  }

 private:
  static void AddLanes(V sum, double* sums) {
    float lanes[simd::kLanes];
    simd::Store(lanes, sum);
    for (int i = 0; i < simd::kLanes; ++i) sums[i] += lanes[i];
  }
};

}  // namespace headwise::kernels
