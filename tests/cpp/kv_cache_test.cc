// Tests: the key/value cache against the double reference: any division of a text, cells, rings, lengths, giving up.
#include "headwise/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attention_case.h"
#include "random_values.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr std::int32_t kBatch = 2;
constexpr std::int32_t kHeads = 4;
constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kDim = 12;
constexpr std::int32_t kValueDim = 7;

Strides Contiguous(std::int32_t heads, std::int32_t rows, std::int32_t size) {
  return {heads * rows * size, rows * size, size};
}

// A text of `length` tokens, and the steps over it.
class Text {
 public:
  Text(std::int32_t length, std::uint32_t seed) : length_(length) {
    RandomValues random(seed);
    q_ = random.Floats(std::int64_t{kBatch} * kHeads * length * kDim);
    k_ = random.Floats(std::int64_t{kBatch} * kKvHeads * length * kDim);
    v_ = random.Floats(std::int64_t{kBatch} * kKvHeads * length * kValueDim);
    out_.resize(static_cast<std::size_t>(kBatch * kHeads * length * kValueDim), -99.0F);
  }

  // Arguments of the step over tokens first ... first + count - 1.
  KeyValueStepArgs Step(KeyValueCache& cache, std::int32_t first, std::int32_t count) {
    KeyValueStepArgs step;
    step.cache = &cache;
    AttentionArgs& a = step.call;
    a.batch = kBatch;
    a.heads = kHeads;
    a.kv_heads = kKvHeads;
    a.queries = count;
    a.head_dim = kDim;
    a.value_dim = kValueDim;
    a.scale = 1.0F / std::sqrt(static_cast<float>(kDim));
    a.causal = 1;
    a.q_strides = Contiguous(kHeads, length_, kDim);
    a.k_strides = Contiguous(kKvHeads, length_, kDim);
    a.v_strides = Contiguous(kKvHeads, length_, kValueDim);
    a.out_strides = Contiguous(kHeads, length_, kValueDim);
    a.q = q_.data() + std::int64_t{first} * kDim;
    a.k = k_.data() + std::int64_t{first} * kDim;
    a.v = v_.data() + std::int64_t{first} * kValueDim;
    a.out = out_.data() + std::int64_t{first} * kValueDim;
    a.keys = first + count;
    return step;
  }

  Status Run(KeyValueCache& cache, std::int32_t first, std::int32_t count, ThreadPool& pool) {
    KeyValueStep step;
    Job job;
    if (const Status status = step.Prepare(Step(cache, first, count), pool, job); !status.ok()) return status;
    job.Run(pool);
    return Status::Ok();
  }

  std::vector<float> Reference(std::int32_t window, std::int32_t sinks) {
    KeyValueCache none;
    AttentionArgs a = Step(none, 0, length_).call;
    std::vector<float> out(out_.size());
    a.out = out.data();
    std::vector<std::uint8_t> mask;
    for (std::int32_t i = 0; i < length_; ++i) {
      for (std::int32_t j = 0; j < length_; ++j) mask.push_back(window == 0 || j > i - window || j < sinks ? 1 : 0);
    }
    a.mask = mask.data();
    a.mask_strides = {0, 0, length_, 1};
    EXPECT_TRUE(AttentionReference(a).ok());
    return out;
  }

  const std::vector<float>& out() const { return out_; }

 private:
  std::int32_t length_;
  std::vector<float> q_, k_, v_, out_;
};

KeyValueCacheConfig Config(std::int32_t capacity, CellType type = CellType::kFloat32) {
  KeyValueCacheConfig config;
  config.batch = kBatch;
  config.kv_heads = kKvHeads;
  config.head_dim = kDim;
  config.value_dim = kValueDim;
  config.capacity = capacity;
  config.cell_type = type;
  return config;
}

double ToleranceOf(CellType type) {
  switch (type) {
    case CellType::kFloat16:
      return kHalfCacheTolerance;
    case CellType::kInt8:
      return kInt8CacheTolerance;
    case CellType::kFloat32:
      break;
  }
  return kAttentionTolerance;
}

std::vector<std::int32_t> Chunks(std::int32_t length, std::int32_t size) {
  std::vector<std::int32_t> chunks;
  for (; length > 0; length -= chunks.back()) chunks.push_back(std::min(size, length));
  return chunks;
}

TEST(KeyValueCache, AnyDivisionGivesOneCausalPass) {
  constexpr std::int32_t kLength = 150;
  ThreadPool pool(3);
  for (const CellType type : {CellType::kFloat32, CellType::kFloat16, CellType::kInt8}) {
    for (const std::int32_t size : {1, 2, 5, 70, kLength}) {
      Text text(kLength, 1);
      KeyValueCache cache;
      ASSERT_TRUE(cache.Init(Config(kLength, type)).ok());
      std::int32_t first = 0;
      for (const std::int32_t chunk : Chunks(kLength, size)) {
        ASSERT_TRUE(text.Run(cache, first, chunk, pool).ok());
        first += chunk;
      }
      EXPECT_LE(Distance(text.out(), text.Reference(0, 0)), ToleranceOf(type))
          << static_cast<int>(type) << ", " << size;
      EXPECT_EQ(cache.lengths()[1], kLength);
    }
  }
}

TEST(KeyValueCache, RingsSeeTheWindowAndTheSinks) {
  constexpr std::int32_t kLength = 90;
  ThreadPool pool(2);
  for (const std::int32_t window : {1, 6, 30, 100}) {
    for (const std::int32_t sinks : {0, 1, 4}) {
      for (const std::int32_t spare : {0, 3, 50}) {
        for (const std::int32_t size : {1, 7, kLength}) {
          Text text(kLength, 2);
          KeyValueCacheConfig config = Config(window + sinks + spare);
          config.window = window;
          config.sink_tokens = sinks;
          KeyValueCache cache;
          ASSERT_TRUE(cache.Init(config).ok());
          std::int32_t first = 0;
          for (const std::int32_t chunk : Chunks(kLength, size)) {
            ASSERT_TRUE(text.Run(cache, first, chunk, pool).ok());
            first += chunk;
          }
          ASSERT_LE(Distance(text.out(), text.Reference(window, sinks)), kAttentionTolerance)
              << "window " << window << ", sinks " << sinks << ", spare " << spare << ", chunks of " << size;
        }
      }
    }
  }
}

TEST(KeyValueCache, BitsDoNotDependOnThreads) {
  constexpr std::int32_t kLength = 140;
  std::vector<float> first;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Text text(kLength, 3);
    KeyValueCache cache;
    ASSERT_TRUE(cache.Init(Config(kLength, CellType::kInt8)).ok());
    ASSERT_TRUE(text.Run(cache, 0, 130, pool).ok());
    ASSERT_TRUE(text.Run(cache, 130, 10, pool).ok());
    if (first.empty()) first = text.out();
    EXPECT_TRUE(SameBits(first, text.out()));
  }
}

TEST(KeyValueCache, FullIsSaidBeforeAnythingMoves) {
  ThreadPool pool(1);
  Text text(10, 4);
  KeyValueCache cache;
  ASSERT_TRUE(cache.Init(Config(8)).ok());
  ASSERT_TRUE(text.Run(cache, 0, 6, pool).ok());
  const Status status = text.Run(cache, 6, 3, pool);
  EXPECT_EQ(status.code, StatusCode::kInvalidShape);
  EXPECT_EQ(std::string(status.argument), "k");
  EXPECT_EQ(cache.lengths()[0], 6);
  EXPECT_EQ(text.out()[6 * kValueDim], -99.0F);
  EXPECT_TRUE(text.Run(cache, 6, 2, pool).ok());
}

TEST(KeyValueCache, AStepThatIsGivenUpHasChangedNothing) {
  constexpr std::int32_t kLength = 40;
  ThreadPool pool(1);
  for (const std::int32_t window : {0, 9}) {
    Text text(kLength, 5);
    KeyValueCacheConfig config = Config(kLength);
    config.window = window;
    if (window > 0) config.capacity = 19;  // up to 11 tokens at once
    KeyValueCache cache;
    ASSERT_TRUE(cache.Init(config).ok());
    for (std::int32_t at = 0; at < 30; at += 10) ASSERT_TRUE(text.Run(cache, at, 10, pool).ok());
    {
      Text other(kLength, 6);
      KeyValueStep step;
      Job job;
      KeyValueStepArgs args = other.Step(cache, 0, 11);
      args.call.keys = kLength + 1;
      if (window == 0) args.call.queries = 10;
      if (window == 0) args.call.keys = kLength;
      ASSERT_TRUE(step.Prepare(args, pool, job).ok());
      EXPECT_EQ(text.Run(cache, 30, 1, pool).code, StatusCode::kInvalidValue);  // one at a time
      for (int slice = 0; slice < 5; ++slice) EXPECT_FALSE(job.Run(pool, 0.0));
    }
    EXPECT_EQ(cache.lengths()[0], 30);
    ASSERT_TRUE(text.Run(cache, 30, 10, pool).ok());
    EXPECT_LE(Distance(text.out(), text.Reference(window, 0)), kAttentionTolerance) << window;
  }
}

TEST(KeyValueCache, TrimsAndForks) {
  ThreadPool pool(2);
  Text text(20, 7);
  KeyValueCache cache;
  ASSERT_TRUE(cache.Init(Config(20)).ok());
  ASSERT_TRUE(text.Run(cache, 0, 15, pool).ok());
  const std::int32_t longer[] = {3, 16};
  EXPECT_EQ(cache.Trim(longer).code, StatusCode::kInvalidValue);
  const std::int32_t negative[] = {-1, 0};
  EXPECT_EQ(cache.Trim(negative).code, StatusCode::kInvalidValue);
  EXPECT_EQ(cache.lengths()[0], 15);
  const std::int32_t shorter[] = {8, 8};
  ASSERT_TRUE(cache.Trim(shorter).ok());
  KeyValueCache copy;
  ASSERT_TRUE(copy.InitFrom(cache, nullptr, 0, pool).ok());
  ASSERT_TRUE(text.Run(cache, 8, 12, pool).ok());
  const std::vector<float> out = text.out();
  EXPECT_LE(Distance(out, text.Reference(0, 0)), kAttentionTolerance);
  ASSERT_TRUE(text.Run(copy, 8, 12, pool).ok());
  EXPECT_TRUE(SameBits(out, text.out()));
}

TEST(KeyValueCache, RefusesConfigurationsThatDoNotFit) {
  KeyValueCache cache;
  KeyValueCacheConfig config = Config(8);
  config.window = 9;
  EXPECT_EQ(cache.Init(config).code, StatusCode::kInvalidShape);
  config = Config(8);
  config.sink_tokens = 1;
  EXPECT_EQ(cache.Init(config).code, StatusCode::kInvalidValue);
  config = Config(8);
  config.rope.dim = 3;
  EXPECT_EQ(cache.Init(config).code, StatusCode::kInvalidShape);
  config = Config(2'000'000'000);
  EXPECT_EQ(cache.Init(config).code, StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace headwise::testing
