// Tests: the matrix product against a plain loop in double. The tolerance is the kernel's own bound, element by
// element.
#include "headwise/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gemm/block.h"
#include "guarded.h"
#include "random_values.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::RandomValues;
using headwise::testing::SameBits;

struct Problem {
  std::int32_t m, n, k;
  std::int64_t a_stride, c_stride;
  std::vector<float> a, w, bias, c;

  Problem(std::int32_t rows, std::int32_t columns, std::int32_t depth, std::int64_t slack = 0)
      : m(rows), n(columns), k(depth), a_stride(depth + slack), c_stride(columns + slack) {
    RandomValues random(static_cast<std::uint32_t>(m * 7919 + n * 104729 + k));
    a = random.Floats(m * a_stride);
    w = random.Floats(std::int64_t{k} * n);
    bias = random.Floats(n);
    c = random.Floats(m * c_stride);
  }
};

// |computed - exact| <= (k + 2) 2^-24 (|start| + sum |a w|): k roundings of the chain, one for each block's addition,
// of which there are fewer than k, and one for the start.
void ExpectProduct(const Problem& p, const Guarded& c, bool with_bias, bool accumulate) {
  for (std::int32_t i = 0; i < p.m; ++i) {
    for (std::int32_t j = 0; j < p.n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i * p.c_stride + j);
      double sum = accumulate ? p.c[at] : (with_bias ? p.bias[j] : 0.0F);
      double magnitude = std::fabs(sum);
      for (std::int32_t x = 0; x < p.k; ++x) {
        const double term = double{p.a[i * p.a_stride + x]} * double{p.w[static_cast<std::size_t>(x) * p.n + j]};
        sum += term;
        magnitude += std::fabs(term);
      }
      const double bound = (p.k + 2) * 0x1p-24 * magnitude;
      ASSERT_NEAR(c[at], sum, bound) << p.m << " x " << p.n << " x " << p.k << " at " << i << ", " << j;
    }
    for (std::int64_t j = p.n; j < p.c_stride; ++j) {
      ASSERT_EQ(c[i * p.c_stride + j], p.c[i * p.c_stride + j]) << "the gap between rows is not ours";
    }
  }
  EXPECT_TRUE(c.MarginsIntact());
}

Guarded Multiply(const Problem& p, bool with_bias, bool accumulate, ThreadPool& pool) {
  PackedMatrix w;
  EXPECT_TRUE(w.Pack(p.w.data(), p.k, p.n, p.n, 1).ok());
  Guarded c(p.m * p.c_stride);
  for (std::size_t i = 0; i < p.c.size(); ++i) {
    const bool gap = static_cast<std::int64_t>(i) % p.c_stride >= p.n;
    if (accumulate || gap) c.data()[i] = p.c[i];
  }
  GemmArgs args;
  args.m = p.m;
  args.a = p.a.data();
  args.a_row_stride = p.a_stride;
  args.w = &w;
  args.bias = with_bias ? p.bias.data() : nullptr;
  args.c = c.data();
  args.c_row_stride = p.c_stride;
  args.accumulate = accumulate;
  EXPECT_TRUE(Gemm(args, pool).ok());
  return c;
}

TEST(Gemm, MatchesThePlainLoopOnOddSizes) {
  ThreadPool pool(1);
  const GemmTileShape tile = TileOfProducts();
  for (const std::int32_t m : {0, 1, 2, tile.rows - 1, tile.rows, tile.rows + 1, 13, 8 * tile.rows + 1}) {
    for (const std::int32_t n : {0, 1, 3, tile.columns - 1, tile.columns, tile.columns + 1, 37}) {
      for (const std::int32_t k : {0, 1, 2, 17, 64}) {
        const Problem problem(m, n, k);
        ExpectProduct(problem, Multiply(problem, false, false, pool), false, false);
        ExpectProduct(problem, Multiply(problem, true, false, pool), true, false);
        ExpectProduct(problem, Multiply(problem, false, true, pool), false, true);
      }
    }
  }
}

TEST(Gemm, SumsLongRowsInBlocks) {
  ThreadPool pool(1);
  const std::int32_t block = PlanGemm(4, 8, 1 << 20, TileOfProducts()).k_block;
  for (const std::int32_t k : {block - 1, block, block + 1, 3 * block + 5}) {
    const Problem problem(7, 11, k);
    ExpectProduct(problem, Multiply(problem, true, false, pool), true, false);
    ExpectProduct(problem, Multiply(problem, false, true, pool), false, true);
  }
}

TEST(Gemm, WritesNothingBetweenStridedRows) {
  ThreadPool pool(2);
  const Problem problem(29, 21, 33, 5);
  ExpectProduct(problem, Multiply(problem, true, false, pool), true, false);
  ExpectProduct(problem, Multiply(problem, false, true, pool), false, true);
}

TEST(Gemm, IgnoresTheBiasWhenAccumulating) {
  ThreadPool pool(1);
  const Problem problem(9, 10, 4);
  EXPECT_TRUE(SameBits(Multiply(problem, true, true, pool).Values(), Multiply(problem, false, true, pool).Values()));
}

TEST(Gemm, IsBitIdenticalForAnyNumberOfThreads) {
  const Problem problem(151, 203, 517);
  ThreadPool one(1);
  const std::vector<float> expected = Multiply(problem, true, false, one).Values();
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    EXPECT_TRUE(SameBits(Multiply(problem, true, false, pool).Values(), expected)) << threads;
  }
}

TEST(Gemm, ARowDoesNotDependOnItsNeighbours) {
  ThreadPool pool(1);
  const Problem all(100, 40, 77);
  const std::vector<float> expected = Multiply(all, true, false, pool).Values();
  for (const std::int32_t row : {0, 5, 47, 48, 99}) {
    Problem single(1, 40, 77);
    single.w = all.w;
    single.bias = all.bias;
    single.a.assign(all.a.begin() + row * 77, all.a.begin() + (row + 1) * 77);
    const std::vector<float> expected_row(expected.begin() + row * 40, expected.begin() + (row + 1) * 40);
    EXPECT_TRUE(SameBits(Multiply(single, true, false, pool).Values(), expected_row)) << row;
  }
}

TEST(Gemm, ANaNStaysInItsRow) {
  ThreadPool pool(1);
  Problem problem(8, 9, 5);
  problem.a[3 * 5 + 2] = std::numeric_limits<float>::quiet_NaN();
  const Guarded c = Multiply(problem, false, false, pool);
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 9; ++j) EXPECT_EQ(std::isnan(c[i * 9 + j]), i == 3);
  }
}

TEST(Gemm, ReportsWhatIsMissing) {
  ThreadPool pool(1);
  const float one = 1.0F;
  PackedMatrix w;
  ASSERT_TRUE(w.Pack(&one, 1, 1, 1, 1).ok());
  GemmArgs args;
  args.m = 1;
  EXPECT_EQ(Gemm(args, pool).code, StatusCode::kInvalidValue);
  args.w = &w;
  EXPECT_STREQ(Gemm(args, pool).argument, "a");
  args.a = &one;
  EXPECT_STREQ(Gemm(args, pool).argument, "c");
  args.m = -1;
  EXPECT_EQ(Gemm(args, pool).code, StatusCode::kInvalidShape);
}

TEST(PackedMatrix, GivesBackTheVeryFloats) {
  for (const std::int32_t rows : {0, 1, 5, 16}) {
    for (const std::int32_t columns : {0, 1, 7, 8, 9, 16, 33}) {
      RandomValues random(static_cast<std::uint32_t>(rows * 100 + columns));
      const std::vector<float> source = random.Floats(std::int64_t{rows} * columns);
      PackedMatrix plain;
      ASSERT_TRUE(plain.Pack(source.data(), rows, columns, columns, 1).ok());
      Guarded target(std::int64_t{rows} * columns);
      plain.Unpack(target.data());
      EXPECT_TRUE(SameBits(target.Values(), source));
      EXPECT_TRUE(target.MarginsIntact());
    }
  }
}

TEST(PackedMatrix, ReadsThroughStrides) {
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};  // [3, 2], wanted as its transpose [2, 3]
  PackedMatrix transposed;
  ASSERT_TRUE(transposed.Pack(source.data(), 2, 3, 1, 2).ok());
  std::vector<float> target(6);
  transposed.Unpack(target.data());
  EXPECT_EQ(target, (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST(PackedMatrix, KeepsItsContentsWhenMemoryIsRefused) {
  const std::vector<float> source = {1, 2, 3, 4};
  PackedMatrix matrix;
  ASSERT_TRUE(matrix.Pack(source.data(), 2, 2, 2, 1).ok());
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  const Status status = matrix.Pack(source.data(), kMax, kMax, 0, 0);
  EXPECT_EQ(status.code, StatusCode::kOutOfMemory);
  EXPECT_GE(status.bytes_wanted, std::uint64_t{1} << 63U);
  std::vector<float> target(4);
  matrix.Unpack(target.data());
  EXPECT_EQ(target, source);
}

TEST(PackedMatrix, MovesItsMemory) {
  const std::vector<float> source = {1, 2};
  PackedMatrix from;
  ASSERT_TRUE(from.Pack(source.data(), 1, 2, 2, 1).ok());
  PackedMatrix to(std::move(from));
  EXPECT_EQ(to.columns(), 2);
  PackedMatrix assigned;
  assigned = std::move(to);
  std::vector<float> target(2);
  assigned.Unpack(target.data());
  EXPECT_EQ(target, source);
}

}  // namespace
}  // namespace headwise
