// Tests: how many random cases a test draws. Optimised builds look for wrong numbers and draw many; builds under sanitizers
// look for wrong accesses, are tens of times slower, and draw the first of them.
#pragma once

#include <cstdint>

namespace headwise::testing {

inline constexpr std::uint32_t kSeeds = HEADWISE_TEST_SEEDS;  // tests/cpp/CMakeLists.txt

}  // namespace headwise::testing
