// Kernel: the product of a few rows with one packed panel, C[rows, kPanel] = A[rows, k] * P[k, kPanel]. Scores, values
// and projections all go through it.
//
// Contract: A is row-major with row stride `lda`; the panel is contiguous, k rows of kPanel floats; C has row stride
// `ldc` and kPanel writable columns. Nothing outside is read or written. Each element is one chain of MulAdd over k in
// ascending order, whatever the number of rows, so a row's result does not depend on its neighbours.
// Error: that of k sequential multiply-adds, at most k * 2^-24 * sum |a p| to first order.
#pragma once

#include <cstddef>
#include <utility>

#include "simd/simd.h"

namespace headwise::kernels {

struct GemmTile {
  using V = simd::Vector;
  static constexpr int kPanelVectors = 2;
  static constexpr int kPanel = kPanelVectors * simd::kLanes;
  // Rows that share the panel's loads. On WebAssembly V8 has 15 registers: 4 x 2 accumulators leave room for the panel, the
  // splat and the next loads (0.81 of the ceiling at 1024 x 1024 x 64); 6 x 2 just fill them (0.77), 4 x 3 and 3 x 4 spill
  // and reach about half.
  static constexpr int kRows = 4;
  // Tried and lost: two or four steps of k in one turn of the loop save scalar instructions, but the loads of all steps move
  // to the front and spill: attention at 1024 x 1024 x 64 fell from 0.76 of the ceiling to 0.56 and 0.43 (with six rows).

  enum class Into { kStore, kAdd, kRescale };

  template <Into kInto>
  static void Run(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c, std::ptrdiff_t ldc,
                  const float* row_scale) {
    for (; rows >= kRows; rows -= kRows) {
      Rows<kRows, kInto>(a, lda, panel, k, c, ldc, row_scale);
      a += kRows * lda;
      c += kRows * ldc;
      if (kInto == Into::kRescale) row_scale += kRows;
    }
    Remainder<kInto>(rows, a, lda, panel, k, c, ldc, row_scale, std::make_integer_sequence<int, kRows - 1>());
  }

 private:
  template <Into kInto, int... kCounts>
  static void Remainder(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                        std::ptrdiff_t ldc, const float* row_scale, std::integer_sequence<int, kCounts...>) {
    ((rows == kCounts + 1 ? Rows<kCounts + 1, kInto>(a, lda, panel, k, c, ldc, row_scale) : void()), ...);
  }

  template <int kCount, Into kInto>
  static inline void Rows(const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c, std::ptrdiff_t ldc,
                          const float* row_scale) {
    V sum[kCount][kPanelVectors];
    for (int r = 0; r < kCount; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) sum[r][v] = simd::Splat(0.0F);
    }
    const float* row[kCount];
    for (int r = 0; r < kCount; ++r) row[r] = a + r * lda;
    for (int i = 0; i < k; ++i, panel += kPanel) {
      V p[kPanelVectors];
      for (int v = 0; v < kPanelVectors; ++v) p[v] = simd::Load(panel + v * simd::kLanes);
      for (int r = 0; r < kCount; ++r) {
        const V splat = simd::Splat(row[r][i]);
        for (int v = 0; v < kPanelVectors; ++v) sum[r][v] = simd::MulAdd(splat, p[v], sum[r][v]);
      }
    }
    for (int r = 0; r < kCount; ++r) {
      float* to = c + r * ldc;
      for (int v = 0; v < kPanelVectors; ++v, to += simd::kLanes) {
        if (kInto == Into::kStore) simd::Store(to, sum[r][v]);
        if (kInto == Into::kAdd) simd::Store(to, simd::Load(to) + sum[r][v]);
        if (kInto == Into::kRescale)
          simd::Store(to, simd::MulAdd(simd::Load(to), simd::Splat(row_scale[r]), sum[r][v]));
      }
    }
  }
};

}  // namespace headwise::kernels
