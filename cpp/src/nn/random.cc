// Blocks: Philox4x32-10 and the Glorot-uniform start values.
#include "headwise/random.h"

#include <cmath>

namespace headwise {
namespace {

// The multipliers and the key schedule's increments of Philox4x32 (Salmon et al., 2011, table 2 and section 4.3).
constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
constexpr int kRounds = 10;
constexpr int kWords = 4;

// A float has 24 bits of precision: 24 random bits give 2^24 equally spaced values, all of them exact.
constexpr int kBits = 24;

}  // namespace

void Philox(const std::uint32_t counter[4], const std::uint32_t key[2], std::uint32_t words[4]) {
  std::uint32_t x0 = counter[0];
  std::uint32_t x1 = counter[1];
  std::uint32_t x2 = counter[2];
  std::uint32_t x3 = counter[3];
  std::uint32_t key0 = key[0];
  std::uint32_t key1 = key[1];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * x0;
    const std::uint64_t product1 = kMultiplier1 * x2;
    const auto next0 = static_cast<std::uint32_t>(product1 >> 32U) ^ x1 ^ key0;
    const auto next2 = static_cast<std::uint32_t>(product0 >> 32U) ^ x3 ^ key1;
    x1 = static_cast<std::uint32_t>(product1);
    x3 = static_cast<std::uint32_t>(product0);
    x0 = next0;
    x2 = next2;
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  words[0] = x0;
  words[1] = x1;
  words[2] = x2;
  words[3] = x3;
}

void GlorotUniform(std::uint64_t seed, std::uint32_t stream, std::int64_t fan_in, std::int64_t fan_out,
                   std::int64_t count, float* target) {
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  const std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
  std::uint32_t words[kWords] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % kWords == 0) {
      const auto block = static_cast<std::uint64_t>(i / kWords);
      const std::uint32_t counter[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U),
                                        stream, 0};
      Philox(counter, key, words);
    }
    // The middles of 2^24 equal intervals of (-1, 1): an odd integer over 2^24, hence exact, symmetric and never 0.
    const std::int64_t interval = words[i % kWords] >> (32U - kBits);
    const double unit = static_cast<double>(2 * interval + 1 - (std::int64_t{1} << kBits)) / (1 << kBits);
    target[i] = static_cast<float>(unit * limit);
  }
}

}  // namespace headwise
