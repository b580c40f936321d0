// SIMD layer: the vector type of the kernels and the few operations they need. The only file that includes xsimd.
// Where xsimd's choice costs speed on WebAssembly (it has no relaxed-SIMD architecture) the override stands here.
#pragma once

#include <cstdint>
#include <cstring>
#include <xsimd/xsimd.hpp>

#if defined(__wasm_relaxed_simd__)
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

// Rows become columns of a square of kLanes vectors.
inline void Transpose(Vector (&square)[kLanes]) { xsimd::transpose(square, square + kLanes); }

// Computes `v` here, before any later load. Without it the compiler gathers a chain of MulAdd at its last use, for which it
// loads all operands first and then spills them.
inline void KeepInPlace([[maybe_unused]] Vector& v) {
#if defined(__wasm_simd128__)
  asm volatile("" : "+r"(v.data) : : "memory");
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
