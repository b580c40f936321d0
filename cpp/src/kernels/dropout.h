// Kernel: dropout by a stateless generator, so that the same weight meets the same fate on any thread, tile or device.
// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): key = seed, counter = (key / 4,
// query, head, batch); the four words of a block belong to keys 4c ... 4c + 3. 32-bit operations only, as WGSL has.
#pragma once

#include <cstdint>

namespace headwise::kernels {

struct Philox {
  std::uint32_t key0, key1;

  void Block(std::uint32_t counter0, std::uint32_t counter1, std::uint32_t counter2, std::uint32_t counter3,
             std::uint32_t out[4]) const {
    std::uint32_t c0 = counter0, c1 = counter1, c2 = counter2, c3 = counter3, k0 = key0, k1 = key1;
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c0;
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c2;
      const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
  }
};

struct Dropout {
  Philox philox;
  std::uint32_t threshold;  // a word below it drops: rate * 2^32
  bool all;                 // rate 1
  float keep_scale;         // 1 / (1 - rate)

  Dropout(float rate, std::uint32_t seed_low, std::uint32_t seed_high)
      : philox{seed_low, seed_high},
        threshold(static_cast<std::uint32_t>(static_cast<double>(rate >= 1.0F ? 0.0F : rate) * 4294967296.0)),
        all(rate >= 1.0F),
        keep_scale(all ? 0.0F : 1.0F / (1.0F - rate)) {}

  float Factor(int b, int h, int i, int j) const {
    std::uint32_t words[4];
    philox.Block(static_cast<std::uint32_t>(j) / 4, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(h),
                 static_cast<std::uint32_t>(b), words);
    return all || words[j % 4] < threshold ? 0.0F : keep_scale;
  }

  // Multiplies the weights of keys first ... first + keys - 1 of row i of (b, h).
  void Apply(float* weights, int keys, int b, int h, int i, int first) const {
    std::uint32_t words[4];
    std::uint32_t block = 0xFFFFFFFFU;
    for (int n = 0; n < keys; ++n) {
      const auto j = static_cast<std::uint32_t>(first + n);
      if (j / 4 != block) {
        block = j / 4;
        philox.Block(block, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(b),
                     words);
      }
      weights[n] *= all || words[j % 4] < threshold ? 0.0F : keep_scale;
    }
  }
};

}  // namespace headwise::kernels
