// SIMD layer: the vector type of the kernels and the few operations they need. The only file that includes xsimd.
// Where xsimd's choice costs speed on WebAssembly (it has no relaxed-SIMD architecture) the override stands here.
#pragma once

#ifdef HEADWISE_SCALAR
#error "this object is compiled once for every instruction set: list its file under simd_sources in cpp/CMakeLists.txt"
#endif

#include <cstdint>
#include <cstring>
#include <xsimd/xsimd.hpp>

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

namespace headwise::simd {

using Vector = xsimd::batch<float>;
inline constexpr int kLanes = static_cast<int>(Vector::size);
#if defined(__wasm_relaxed_simd__)
inline constexpr const char* kName = "wasm relaxed";
#else
inline constexpr const char* kName = xsimd::default_arch::name();
#endif

inline Vector Load(const float* p) { return Vector::load_unaligned(p); }
inline void Store(float* p, Vector v) { v.store_unaligned(p); }
inline Vector Splat(float x) { return Vector(x); }

// Whether MulAdd is one instruction; where it is two, the product takes a register of its own.
#if defined(__wasm_simd128__) && !defined(__wasm_relaxed_simd__)
inline constexpr bool kFusedMulAdd = false;
#else
inline constexpr bool kFusedMulAdd = true;
#endif

// a * b + c: one rounding where the target has a fused instruction (relaxed SIMD on common hardware, FMA3, NEON), two
// on plain WebAssembly SIMD.
inline Vector MulAdd(Vector a, Vector b, Vector c) {
#if defined(__wasm_relaxed_simd__)
  return Vector(wasm_f32x4_relaxed_madd(a, b, c));
#else
  return xsimd::fma(a, b, c);
#endif
}

// a < b ? b : a, so that a NaN in `b` is dropped and one in `a` is kept: one instruction on x86 and WebAssembly.
inline Vector MaxKeepFirst(Vector a, Vector b) {
#if defined(__wasm_simd128__)
  return Vector(wasm_f32x4_pmax(a, b));
#else
  return xsimd::select(a < b, b, a);
#endif
}

// The low eight bits of each lane, moved to where a float has its exponent.
inline Vector LowBitsToExponent(Vector x) {
  return xsimd::bitwise_cast<float>(xsimd::bitwise_cast<std::int32_t>(x) << 23);
}

// A binary16 number, exactly: its bits moved to where a float has them, times 2^112 for the exponents' biases.
inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffU) << 13U;
  float value;
  std::memcpy(&value, &magnitude, sizeof value);
  value *= 0x1p112F;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits |= (magnitude >= 0x0f800000U ? 0x7f800000U : 0U) | (half & 0x8000U) << 16U;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// What LoadHalf computes with, a number a vector.
struct HalfVectors {
  Vector mask;      // 0x8fffe000: sign and magnitude of a half that was extended with its sign and shifted by 13
  Vector scale;     // 2^112, for the exponents' biases
  Vector limit;     // 2^16: infinities and NaN come out there and above
  Vector infinity;  // their exponent
};

// Whether no infinity or NaN is among `count` binary16 numbers.
inline bool HalvesAreFinite(const std::uint16_t* p, int count) {
  constexpr std::uint16_t kExponent = 0x7c00;
  int i = 0;
#if defined(__wasm_simd128__)
  const v128_t magnitude = wasm_i16x8_splat(0x7fff);
  v128_t top = wasm_i16x8_splat(0);
  for (; i + 8 <= count; i += 8) top = wasm_i16x8_max(top, wasm_v128_and(wasm_v128_load(p + i), magnitude));
  if (wasm_v128_any_true(wasm_i16x8_ge(top, wasm_i16x8_splat(kExponent)))) return false;
#endif
  for (; i < count; ++i) {
    if ((p[i] & kExponent) == kExponent) return false;
  }
  return true;
}

// kLanes binary16 numbers, exactly; where `kFinite`, an infinity or NaN comes out as a large number. WebAssembly has no
// instruction for it.
template <bool kFinite>
Vector LoadHalf(const std::uint16_t* p, [[maybe_unused]] const HalfVectors& with) {
#if defined(__wasm_simd128__)
  const v128_t bits = wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13), with.mask);
  const v128_t value = wasm_f32x4_mul(bits, with.scale);
  if constexpr (kFinite) return Vector(value);
  const v128_t special = wasm_f32x4_ge(wasm_f32x4_abs(value), with.limit);
  return Vector(wasm_v128_or(value, wasm_v128_and(special, with.infinity)));
#else
  alignas(64) float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = HalfToFloat(p[i]);
  return Load(lanes);
#endif
}

// kLanes small integers as floats.
inline Vector LoadInt8(const std::int8_t* p) {
#if defined(__wasm_simd128__)
  const v128_t words = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p));
  return Vector(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(words)));
#else
  alignas(64) float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(p[i]);
  return Load(lanes);
#endif
}

// Rows become columns of a square of kLanes vectors.
inline void Transpose(Vector (&square)[kLanes]) { xsimd::transpose(square, square + kLanes); }

// Computes `v` here, before any later load. Without it the compiler gathers a chain of MulAdd at its last use, for which it
// loads all operands first and then spills them.
inline void KeepInPlace([[maybe_unused]] Vector& v) {
#if defined(__wasm_simd128__)
  asm volatile("" : "+r"(v.data) : : "memory");
#endif
}

// Advances `p` here, in one register. Without it the compiler replaces a loop's pointers by others that it computes from a count
// of turns, more of them than V8 has registers for.
template <class T>
void KeepInPlace([[maybe_unused]] T*& p) {
#if defined(__wasm_simd128__)
  asm volatile("" : "+r"(p));
#endif
}

inline Vector Abs(Vector x) { return xsimd::abs(x); }
inline Vector CopySign(Vector magnitude, Vector sign) { return xsimd::copysign(magnitude, sign); }
inline Vector Select(xsimd::batch_bool<float> condition, Vector yes, Vector no) {
  return xsimd::select(condition, yes, no);
}

inline float FirstLane(Vector v) { return v.first(); }
inline float Sum(Vector v) { return xsimd::reduce_add(v); }
inline float MaxLane(Vector v) { return xsimd::reduce_max(v); }

}  // namespace headwise::simd
