// Tests: an output buffer between poisoned margins, itself poisoned: what is written outside, or left unwritten, shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace headwise::testing {

class Guarded {
 public:
  explicit Guarded(std::int64_t count) : values_(static_cast<std::size_t>(count) + 2 * kMargin, Poison()) {}

  float* data() { return values_.data() + kMargin; }
  const float* data() const { return values_.data() + kMargin; }
  std::size_t size() const { return values_.size() - 2 * kMargin; }
  float operator[](std::size_t i) const { return data()[i]; }
  std::vector<float> Values() const { return {data(), data() + size()}; }

  bool MarginsIntact() const {
    for (std::size_t i = 0; i < kMargin; ++i) {
      if (!Poisoned(values_[i]) || !Poisoned(values_[values_.size() - 1 - i])) return false;
    }
    return true;
  }
  static bool Poisoned(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits == kPoison;
  }
  static float Poison() {
    float value = 0.0F;
    std::memcpy(&value, &kPoison, sizeof(value));
    return value;
  }

 private:
  static constexpr std::size_t kMargin = 64;
  static constexpr std::uint32_t kPoison = 0x7FC0BEEFU;  // a quiet NaN that no arithmetic makes
  std::vector<float> values_;
};

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace headwise::testing
