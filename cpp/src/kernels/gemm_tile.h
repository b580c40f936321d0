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
  // Rows that share the panel's loads, and steps of k in one turn of the loop. Instructions per multiply-add decide, above
  // all where a sibling thread takes half of a core's issue slots. On WebAssembly V8 has 15 registers, which 6 x 2 sums, a
  // row of the panel and a splat just fill; it spends an instruction on the address of each step's splats, one on every
  // pointer's advance, and a few on the loop: 1.80 in all, of which 1.67 are the tile's own.
  // Share of the multiply-add ceiling, tile alone, core shared / quiet (steps 1, 4, 8): 4 rows 0.60 / 0.94, 0.73 / 0.98,
  // 0.78 / 0.97; 6 rows 0.62 / 0.94, 0.79 / 0.95, 0.84 / 0.95. Pointers that the compiler may not replace, and 16 steps: 5 %
  // more than 8 with 2.00 instructions. A branch more between loop and stores costs 3 to 6 % (one function for store and add,
  // a test for half a turn where there is no rest): it is taken once a tile, and there are 64 x 12 multiply-adds in one.
  // 3 x 3 comes near; 12 x 1 and 10 x 1 reach half; 4 x 3 and 3 x 4 spill.
  // Tried and lost: rows interleaved (one pointer, but V8 then computes an address for every splat), rows at a constant
  // distance (the same), every element of A stored as a vector (no gain), Estrin's scheme and two interleaved polynomials in
  // the softmax (no gain). V8's --experimental-wasm-revectorize finds nothing to pair any more.
  static constexpr int kRows = simd::kFusedMulAdd ? 6 : 4;
  static constexpr int kDepth = 16;
  static constexpr int kHalfDepth = 8;
  // Of RunShort, GFLOP/s there where the long turns reach 17 (V8 12.4), 19 (JavaScriptCore), 8 (V8 11.3): 44, 31, 24.
  static constexpr int kShortRows = 4;

  enum class Into { kStore, kAdd };

  template <Into kInto>
  static void Run(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                  std::ptrdiff_t ldc) {
    for (; rows >= kRows; rows -= kRows) {
      Rows<kRows, kInto, Turn::kLong>(a, lda, panel, k, c, ldc);
      a += kRows * lda;
      c += kRows * ldc;
    }
    FewRows<kInto>(rows, a, lda, panel, k, c, ldc);
  }

  // Few rows and one step a turn, for compilers that load all of a turn's operands first and then spill them. The same bits.
  template <Into kInto>
  static void RunShort(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                       std::ptrdiff_t ldc) {
    for (; rows > 0; rows -= kShortRows) {
      FewRows<kInto>(rows < kShortRows ? rows : kShortRows, a, lda, panel, k, c, ldc);
      a += kShortRows * lda;
      c += kShortRows * ldc;
    }
  }

 private:
  enum class Turn { kLong, kShort };

  template <Into kInto>
  static void FewRows(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                      std::ptrdiff_t ldc) {
    constexpr int kMost = kRows - 1 < kShortRows ? kShortRows : kRows - 1;
    FewRows<kInto>(rows, a, lda, panel, k, c, ldc, std::make_integer_sequence<int, kMost>());
  }
  template <Into kInto, int... kCounts>
  static void FewRows(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                      std::ptrdiff_t ldc, std::integer_sequence<int, kCounts...> /*counts*/) {
    ((rows == kCounts + 1 ? Rows<kCounts + 1, kInto, Turn::kShort>(a, lda, panel, k, c, ldc) : void()), ...);
  }

  template <int kCount>
  [[gnu::always_inline]] static inline void Step(const float* const (&row)[kCount], int i, const float* panel,
                                                 V (&sum)[kCount][kPanelVectors]) {
    V p[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) p[v] = simd::Load(panel + i * kPanel + v * simd::kLanes);
    for (int r = 0; r < kCount; ++r) {
      const V splat = simd::Splat(row[r][i]);
      for (int v = 0; v < kPanelVectors; ++v) {
        sum[r][v] = simd::MulAdd(splat, p[v], sum[r][v]);
        simd::KeepInPlace(sum[r][v]);
      }
    }
  }

  template <int kCount, int... kSteps>
  [[gnu::always_inline]] static inline void Steps(const float* (&row)[kCount], const float*& panel,
                                                  V (&sum)[kCount][kPanelVectors],
                                                  std::integer_sequence<int, kSteps...> /*steps*/) {
    (Step<kCount>(row, kSteps, panel, sum), ...);
    for (int r = 0; r < kCount; ++r) {
      row[r] += sizeof...(kSteps);
      simd::KeepInPlace(row[r]);
    }
    panel += sizeof...(kSteps) * kPanel;
    simd::KeepInPlace(panel);
  }

  template <int kCount, Into kInto, Turn kTurn>
  static inline void Rows(const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c, std::ptrdiff_t ldc) {
    V sum[kCount][kPanelVectors];
    for (int r = 0; r < kCount; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) sum[r][v] = simd::Splat(0.0F);
    }
    const float* row[kCount];
    for (const float*& p : row) {
      p = a;
      simd::KeepInPlace(a += lda);
    }
    const float* const end = panel + k * kPanel;
    if constexpr (kTurn == Turn::kLong) {
      const float* const last_turn = panel + (k & -kDepth) * kPanel;
      while (panel != last_turn) Steps(row, panel, sum, std::make_integer_sequence<int, kDepth>());
    }
    if (panel != end) {  // one branch where there is no rest
      if (kTurn == Turn::kLong && (k & kHalfDepth) != 0)
        Steps(row, panel, sum, std::make_integer_sequence<int, kHalfDepth>());
      while (panel != end) Steps(row, panel, sum, std::make_integer_sequence<int, 1>());
    }
    for (const auto& vectors : sum) {
      for (int v = 0; v < kPanelVectors; ++v) {
        float* const to = c + v * simd::kLanes;
        simd::Store(to, kInto == Into::kStore ? vectors[v] : simd::Load(to) + vectors[v]);
      }
      simd::KeepInPlace(c += ldc);
    }
  }
};

}  // namespace headwise::kernels
