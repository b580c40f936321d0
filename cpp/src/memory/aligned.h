// Memory layer: allocation that fails with a null pointer, and sizes that cannot wrap.
#pragma once

#include <cstdint>
#include <limits>

namespace headwise {

inline constexpr std::uint64_t kAlignment = 64;  // a cache line, and any vector

inline constexpr std::uint64_t kTooLarge = std::numeric_limits<std::uint64_t>::max();

// Products and sums of sizes that stay at kTooLarge once they leave 64 bits.
constexpr std::uint64_t CheckedMul(std::uint64_t a, std::uint64_t b) {
  return (b != 0 && a > kTooLarge / b) ? kTooLarge : a * b;
}
constexpr std::uint64_t CheckedAdd(std::uint64_t a, std::uint64_t b) { return a > kTooLarge - b ? kTooLarge : a + b; }
constexpr std::uint64_t AlignUp(std::uint64_t bytes) {
  return bytes > kTooLarge - kAlignment ? kTooLarge : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// `bytes` aligned to kAlignment, or null when they cannot be had (or exceed what a pointer can address).
void* AllocateAligned(std::uint64_t bytes);
void FreeAligned(void* memory);

}  // namespace headwise
