// Kernel: additive scores, s[r, j] = sum_d a_d tanh(q[r, d] + k[j, d]) (Bahdanau et al., 2015), for a few rows and one
// packed panel of keys. The same packing and the same contract as GemmTile; `weights` are the a_d, scale folded in.
#pragma once

#include <cstddef>

#include "kernels/gemm_tile.h"
#include "kernels/tanh.h"

namespace headwise::kernels {

struct AdditiveTile {
  using V = simd::Vector;

  static void Run(int rows, const float* q, std::ptrdiff_t ldq, const float* panel, int k, const float* weights,
                  float* s, std::ptrdiff_t lds) {
    const Tanh tanh;
    for (int r = 0; r < rows; ++r, q += ldq, s += lds) {
      V sum[GemmTile::kPanelVectors];
      for (V& v : sum) v = simd::Splat(0.0F);
      const float* key = panel;
      for (int d = 0; d < k; ++d) {
        const V query = simd::Splat(q[d]);
        const V weight = simd::Splat(weights[d]);
        for (V& v : sum) {
          v = simd::MulAdd(weight, tanh(query + simd::Load(key)), v);
          key += simd::kLanes;
        }
      }
      for (int v = 0; v < GemmTile::kPanelVectors; ++v) simd::Store(s + v * simd::kLanes, sum[v]);
    }
  }
};

}  // namespace headwise::kernels
