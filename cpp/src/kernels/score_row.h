// Kernel: what happens to one row of a tile of scores between the product and the softmax. Natural units throughout,
// except Hide and the masks, which do not care.
//
// Contract: `s` has `width` scores; bias and mask rows are read for `keys` <= width columns, with column stride 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/softmax_tile.h"
#include "kernels/tanh.h"
#include "simd/simd.h"

namespace headwise::kernels {

struct ScoreRow {
  static constexpr float kHidden = -std::numeric_limits<float>::infinity();

  // s <- cap * tanh(s / cap). `width` is a multiple of kLanes.
  static void Softcap(float* s, int width, float cap) {
    const Tanh tanh;
    const simd::Vector c = simd::Splat(cap);
    for (int i = 0; i < width; i += simd::kLanes) simd::Store(s + i, c * tanh(simd::Load(s + i) / c));
  }

  // s <- s + bias; -infinity in the bias hides whatever the score was, and a finite bias never does: sums are kept at
  // or above the lowest finite float.
  static void AddBias(float* s, int keys, const float* bias, std::ptrdiff_t column_stride) {
    for (int i = 0; i < keys; ++i) {
      const float b = bias[i * column_stride];
      const float sum = s[i] + b;
      const float kept = sum < kLowestScore ? kLowestScore : sum;
      s[i] = b == kHidden ? kHidden : kept;
    }
  }

  // s <- s - slope * |distance - i|, where `distance` is that of the first key: i + offset - j. What a bias hid stays
  // so.
  static void AddAlibi(float* s, int keys, float slope, float distance) {
    for (int i = 0; i < keys; ++i) {
      const float d = distance - static_cast<float>(i);
      const float sum = s[i] - slope * (d < 0.0F ? -d : d);
      const float kept = sum < kLowestScore ? kLowestScore : sum;
      s[i] = s[i] == kHidden ? kHidden : kept;
    }
  }

  static void Mask(float* s, int keys, const std::uint8_t* mask, std::ptrdiff_t column_stride) {
    if (column_stride == 0) {
      if (mask[0] == 0) Hide(s, 0, keys);
      return;
    }
    for (int i = 0; i < keys; ++i) s[i] = mask[i] != 0 ? s[i] : kHidden;
  }

  // The same from bits, lowest first: element i is bit first + i * column_stride.
  static void MaskBits(float* s, int keys, const std::uint8_t* bits, std::ptrdiff_t first,
                       std::ptrdiff_t column_stride) {
    for (int i = 0; i < keys; ++i) {
      const std::ptrdiff_t bit = first + i * column_stride;
      s[i] = ((bits[bit >> 3] >> (bit & 7)) & 1) != 0 ? s[i] : kHidden;
    }
  }

  static void Hide(float* s, int from, int to) {
    for (int i = from; i < to; ++i) s[i] = kHidden;
  }

  // visible[i] = 1 where s is not hidden.
  static void Visible(const float* s, int width, std::uint8_t* visible) {
    for (int i = 0; i < width; ++i) visible[i] = s[i] == kHidden ? 0 : 1;
  }
};

}  // namespace headwise::kernels
