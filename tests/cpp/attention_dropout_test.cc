// Tests: dropout's generator, the kernel's and the oracle's, by the known answers published with Random123 (kat_vectors), which
// have different words in all places of counter and key.
#include <gtest/gtest.h>

#include "attention/reference_rules.h"
#include "kernels/dropout.h"
#include "random_values.h"

namespace headwise::testing {
namespace {

struct KnownAnswer {
  std::uint32_t counter[4];
  std::uint32_t key[2];
  std::uint32_t words[4];
};

constexpr KnownAnswer kAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}},
    {{0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU},
     {0xffffffffU, 0xffffffffU},
     {0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}},
    {{0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U},
     {0xa4093822U, 0x299f31d0U},
     {0xd16cfe09U, 0x94fdcceb, 0x5001e420U, 0x24126ea1U}},
};

TEST(AttentionDropout, BothGeneratorsGiveTheKnownAnswers) {
  for (const KnownAnswer& answer : kAnswers) {
    const auto& c = answer.counter;
    std::uint32_t words[4];
    kernels::Philox{answer.key[0], answer.key[1]}.Block(c[0], c[1], c[2], c[3], words);
    const auto plain = reference::Philox({c[0], c[1], c[2], c[3]}, answer.key[0], answer.key[1]);
    for (std::size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(words[n], answer.words[n]);
      EXPECT_EQ(plain[n], answer.words[n]);
    }
  }
}

TEST(AttentionDropout, BothSayTheSameOfEveryWeight) {
  RandomValues random(1);
  for (int n = 0; n < 2000; ++n) {
    AttentionArgs args;
    args.dropout_rate = n % 50 == 0 ? 1.0F : random.Uniform(0.0F, 1.0F);
    args.dropout_seed_low = static_cast<std::uint32_t>(random.Integer(0, 1 << 30)) * 3U;
    args.dropout_seed_high = static_cast<std::uint32_t>(random.Integer(0, 1 << 30)) * 3U;
    const kernels::Dropout dropout(args.dropout_rate, args.dropout_seed_low, args.dropout_seed_high);
    const int b = random.Integer(0, 3);
    const int h = random.Integer(0, 7);
    const int i = random.Integer(0, 1 << 20);
    const int j = random.Integer(0, 1 << 20);
    float weight = 1.0F;
    dropout.Apply(&weight, 1, b, h, i, j);
    EXPECT_FLOAT_EQ(weight, static_cast<float>(reference::DropoutFactor(args, b, h, i, j)));
  }
}

}  // namespace
}  // namespace headwise::testing
