// Tests: seeded inputs, the same in every build (the standard's distributions are not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace headwise::testing {

class RandomValues {
 public:
  explicit RandomValues(std::uint32_t seed) : engine_(seed) {}

  float Uniform(float low, float high) {
    const float unit = static_cast<float>(engine_() >> 8U) * 0x1p-24F;
    return low + unit * (high - low);
  }
  std::int32_t Integer(std::int32_t low, std::int32_t high) {  // both ends belong
    return low + static_cast<std::int32_t>(engine_() % static_cast<std::uint32_t>(high - low + 1));
  }
  std::vector<float> Floats(std::int64_t count, float low = -1.0F, float high = 1.0F) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = Uniform(low, high);
    return values;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace headwise::testing
