// Tests: the generator against its authors' known answers, and the start values.
#include "headwise/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace headwise {
namespace {

// Known answers of Philox4x32-10 as published with Random123 (kat_vectors).
TEST(Philox, KnownAnswers) {
  struct Answer {
    std::uint32_t counter[4], key[2], words[4];
  };
  const Answer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Answer& answer : answers) {
    std::uint32_t words[4] = {};
    Philox(answer.counter, answer.key, words);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words[i], answer.words[i]);
  }
}

TEST(GlorotUniform, FillsTheInterval) {
  std::vector<float> values(64 * 64);
  GlorotUniform(0, 0, 64, 64, 64 * 64, values.data());
  double sum = 0.0;
  float largest = 0.0F;
  for (const float value : values) {
    sum += value;
    largest = std::max(largest, std::fabs(value));
  }
  EXPECT_GT(largest, 0.20F);
  EXPECT_LE(largest, 0.21651F);  // sqrt(6 / 128)
  // The mean of n values has standard deviation limit / sqrt(3 n) = 0.00195; five of them.
  EXPECT_LT(std::fabs(sum / 4096.0), 0.0098);
}

TEST(GlorotUniform, DependsOnSeedStreamAndIndexAlone) {
  std::vector<float> a(1001);
  std::vector<float> b(17);
  GlorotUniform(9, 2, 10, 10, 1001, a.data());
  GlorotUniform(9, 2, 10, 10, 17, b.data());
  EXPECT_TRUE(std::equal(b.begin(), b.end(), a.begin()));
  GlorotUniform(9, 3, 10, 10, 17, b.data());
  EXPECT_FALSE(std::equal(b.begin(), b.end(), a.begin()));
  GlorotUniform(std::uint64_t{9} << 32U, 2, 10, 10, 17, b.data());
  EXPECT_FALSE(std::equal(b.begin(), b.end(), a.begin()));
}

// The very floats: a build that differs from the others fails here.
TEST(GlorotUniform, IsTheSameInEveryBuild) {
  float values[5] = {};
  GlorotUniform(0, 0, 64, 64, 5, values);
  // (2 (word >> 8) + 1 - 2^24) / 2^24 * sqrt(6 / 128) for the first known answer's words.
  const std::uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; ++i) {
    const double unit = (2.0 * (words[i] >> 8U) + 1.0 - 16777216.0) / 16777216.0;
    EXPECT_EQ(values[i], static_cast<float>(unit * std::sqrt(6.0 / 128.0)));
  }
}

}  // namespace
}  // namespace headwise
