// Kernel: rows of floats to and from the smaller cells of a cache.
//
// Contract: nothing outside the rows is read or written. Half: IEEE binary16, rounded to nearest even, subnormals,
// infinities and NaN kept; beyond 65504 it is infinite. The error is at most 2^-11 of the number, 2^-25 below 2^-14.
// Int8: -127 ... 127 times the row's factor, which is its largest magnitude / 127; the error is at most half a factor (and
// a rounding of float32). A row with an infinity or NaN has the factor NaN: all of it is NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "simd/simd.h"

namespace headwise::kernels {

// Read from memory, so that no vector literal stands in the loop: V8 makes one anew with every use, of five instructions.
struct HalfConstants {
  float mask, scale, limit, infinity;
};
extern const HalfConstants& kHalfConstants;

struct Cells {
  // `count` rows, `stride` cells apart, to rows of `size` floats.
  static void WidenHalf(const std::uint16_t* source, std::ptrdiff_t stride, int count, int size, float* target) {
    const HalfConstants& c = kHalfConstants;
    const simd::HalfVectors with = {simd::Splat(c.mask), simd::Splat(c.scale), simd::Splat(c.limit),
                                    simd::Splat(c.infinity)};
    for (int row = 0; row < count; ++row, source += stride, target += size) {
      int d = 0;
      // To look first is cheaper than to mend each number.
      if (simd::HalvesAreFinite(source, size)) {
        for (; d + simd::kLanes <= size; d += simd::kLanes) {
          simd::Store(target + d, simd::LoadHalf<true>(source + d, with));
        }
      } else {
        for (; d + simd::kLanes <= size; d += simd::kLanes) {
          simd::Store(target + d, simd::LoadHalf<false>(source + d, with));
        }
      }
      for (; d < size; ++d) target[d] = simd::HalfToFloat(source[d]);
    }
  }

  // The factor of row r is scales[r * scale_stride].
  static void WidenInt8(const std::int8_t* source, std::ptrdiff_t stride, int count, int size, const float* scales,
                        std::ptrdiff_t scale_stride, float* target) {
    for (int row = 0; row < count; ++row, source += stride, target += size) {
      const float scale = scales[row * scale_stride];
      const simd::Vector factor = simd::Splat(scale);
      int d = 0;
      for (; d + simd::kLanes <= size; d += simd::kLanes) {
        simd::Store(target + d, simd::LoadInt8(source + d) * factor);
      }
      for (; d < size; ++d) target[d] = static_cast<float>(source[d]) * scale;
    }
  }

  // Without branches, so that the compiler makes vectors of it.
  static void NarrowHalf(const float* source, int size, std::uint16_t* target) {
    for (int d = 0; d < size; ++d) {
      std::uint32_t bits;
      std::memcpy(&bits, source + d, sizeof bits);
      const std::uint32_t sign = bits >> 16U & 0x8000U;
      const std::uint32_t magnitude = bits & 0x7fffffffU;
      // Rounds to even in the bit that is kept; the carry goes into the exponent, as it should.
      const std::uint32_t normal = (magnitude - 0x38000000U + 0xfffU + (magnitude >> 13U & 1U)) >> 13U;
      // Added to 0.5, a number below 2^-14 is rounded to a multiple of 2^-24 by the addition itself.
      float small;
      std::memcpy(&small, &magnitude, sizeof small);
      small += 0.5F;
      std::uint32_t subnormal;
      std::memcpy(&subnormal, &small, sizeof subnormal);
      subnormal -= 0x3f000000U;
      const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
      std::uint32_t half = magnitude < 0x38800000U ? subnormal : normal;
      half = magnitude >= 0x47800000U ? special : half;
      target[d] = static_cast<std::uint16_t>(sign | half);
    }
  }

  // Returns the row's factor; a row of zeros has the factor 0.
  static float NarrowInt8(const float* source, int size, std::int8_t* target) {
    float top = 0.0F;
    bool finite = true;
    for (int d = 0; d < size; ++d) {
      const float magnitude = std::fabs(source[d]);
      finite &= magnitude <= std::numeric_limits<float>::max();  // false for NaN
      top = magnitude > top ? magnitude : top;
    }
    if (!finite || top == 0.0F) {
      std::memset(target, 0, static_cast<std::size_t>(size));
      return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    }
    const float scale = top / 127.0F;
    // Rows so small that the factor is subnormal lose digits in it: the quotient may then leave the range.
    for (int d = 0; d < size; ++d) {
      const float cell = scale > 0.0F ? std::nearbyint(source[d] / scale) : 0.0F;
      target[d] = static_cast<std::int8_t>(cell > 127.0F ? 127.0F : cell < -127.0F ? -127.0F : cell);
    }
    return scale;
  }
};

}  // namespace headwise::kernels
