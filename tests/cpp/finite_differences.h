// Tests: gradients against central differences of fourth order. The function under test is float32; the loss is summed in
// double, and the step is a power of two, so that inputs move exactly.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tolerance.h"

namespace headwise::testing {

// The loss whose gradient by `output` is `weights`.
inline double WeightedSum(const std::vector<float>& output, const std::vector<float>& weights) {
  double sum = 0.0;
  for (std::size_t i = 0; i < output.size(); ++i) sum += static_cast<double>(output[i]) * weights[i];
  return sum;
}

// `loss` reads `input`. A step too long for a kink (ReLU at 0) is the caller's business.
inline void ExpectGradient(std::vector<float>& input, const std::vector<float>& gradient,
                           const std::function<double()>& loss, const char* name,
                           double tolerance = kFiniteDifferenceTolerance, float step = 0x1p-5F) {
  ASSERT_EQ(input.size(), gradient.size()) << name;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const float x = input[i];
    const auto at = [&](float by) {
      input[i] = x + by;
      return loss();
    };
    const double slope = (8.0 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12.0 * step);
    input[i] = x;
    ASSERT_NEAR(gradient[i], slope, tolerance * std::fmax(1.0, std::fabs(slope))) << name << "[" << i << "]";
  }
}

}  // namespace headwise::testing
