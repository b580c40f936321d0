// Tests: the multi-head attention layer's forward pass: cases worked by hand, and every kind of layer against the
// definition in double.
#include "headwise/multi_head_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "guarded.h"
#include "layer_oracle.h"
#include "random_values.h"
#include "tolerance.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::LayerOracle;
using headwise::testing::LayerResult;
using headwise::testing::RandomValues;
using headwise::testing::SameBits;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A layer with every parameter, biases too, drawn from a seed.
void Randomize(MultiHeadAttention& layer, std::uint32_t seed) {
  RandomValues random(seed);
  std::vector<std::vector<float>> values;
  ParameterSources sources;
  for (int i = 0; i < kParameterKinds; ++i) {
    const auto kind = static_cast<ParameterKind>(i);
    const std::int64_t elements = layer.Shape(kind).elements();
    values.push_back(random.Floats(elements, -0.5F, 0.5F));
    if (elements > 0) sources.data[i] = values.back().data();
  }
  ASSERT_TRUE(layer.SetParameters(sources).ok());
}

// Inputs and outputs of one call.
struct Call {
  std::vector<float> query, key, value;
  std::vector<std::uint8_t> padding;
  std::vector<std::int32_t> kv_lengths, q_lengths, offsets;
  MultiHeadAttentionArgs args;

  Call(const MultiHeadAttentionConfig& c, std::int32_t batch, std::int32_t queries, std::int32_t keys,
       std::uint32_t seed) {
    RandomValues random(seed);
    query = random.Floats(std::int64_t{batch} * queries * c.embed_dim);
    key = random.Floats(std::int64_t{batch} * keys * c.key_dim);
    value = random.Floats(std::int64_t{batch} * keys * c.value_dim);
    args.attention.batch = batch;
    args.attention.queries = queries;
    args.attention.keys = keys;
  }
  void Connect() {
    args.query = query.data();
    args.key = key.data();
    args.value = value.data();
    if (!padding.empty()) args.attention.key_padding_mask = padding.data();
    if (!kv_lengths.empty()) args.attention.kv_lengths = kv_lengths.data();
    if (!q_lengths.empty()) args.attention.q_lengths = q_lengths.data();
    if (!offsets.empty()) args.attention.causal_offsets = offsets.data();
  }
};

struct Outputs {
  std::vector<float> output, weights, average;
};

Outputs RunLayer(const MultiHeadAttention& layer, Call& call, int threads, bool with_weights) {
  call.Connect();
  ThreadPool pool(threads);
  const AttentionArgs& a = call.args.attention;
  const std::int64_t rows = std::int64_t{a.batch} * a.queries;
  Guarded output(rows * layer.config().output_dim);
  Guarded weights(with_weights ? rows * layer.config().heads * a.keys : 0);
  Guarded average(with_weights ? rows * a.keys : 0);
  MultiHeadAttentionArgs args = call.args;
  args.output = output.data();
  args.attention.weights = with_weights ? weights.data() : nullptr;
  args.average_weights = with_weights ? average.data() : nullptr;
  const Status status = Forward(layer, args, pool);
  EXPECT_TRUE(status.ok()) << status.argument;
  EXPECT_TRUE(output.MarginsIntact() && weights.MarginsIntact() && average.MarginsIntact());
  return {output.Values(), weights.Values(), average.Values()};
}

void ExpectClose(const std::vector<float>& got, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = headwise::testing::kLayerTolerance * std::fmax(1.0, std::fabs(expected[i]));
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], bound) << what << " at " << i;
  }
}

// Against the definition, and bit-identical for every number of threads, with and without weights.
void ExpectDefinition(const MultiHeadAttention& layer, Call& call, const std::string& what) {
  const Outputs one = RunLayer(layer, call, 1, true);
  const LayerResult expected = LayerOracle(layer, call.args);
  ExpectClose(one.output, expected.output, what + ": output");
  ExpectClose(one.weights, expected.weights, what + ": weights");
  const MultiHeadAttentionConfig& c = layer.config();
  const AttentionArgs& a = call.args.attention;
  std::vector<double> average(one.average.size(), 0.0);
  const std::size_t plane = static_cast<std::size_t>(a.queries) * a.keys;
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    average[i / (plane * c.heads) * plane + i % plane] += expected.weights[i] / c.heads;
  }
  ExpectClose(one.average, average, what + ": average");
  for (const int threads : {2, 3, 4}) {
    EXPECT_TRUE(SameBits(RunLayer(layer, call, threads, false).output, one.output)) << what << ", threads: " << threads;
  }
}

MultiHeadAttentionConfig Config(std::int32_t embed_dim, std::int32_t heads) {
  MultiHeadAttentionConfig config;
  config.embed_dim = embed_dim;
  config.heads = heads;
  return config;
}

// E = 4, two heads, query and key kernels 0, value and output kernels the identity: every output row is the mean of the
// tokens that it sees.
class MeanLayer : public ::testing::Test {
 protected:
  void SetUp() override {
    MultiHeadAttentionConfig config = Config(4, 2);
    config.bias = 0;
    ASSERT_TRUE(layer_.Init(config).ok());
    const std::vector<float> zero(16, 0.0F);
    std::vector<float> identity(16, 0.0F);
    for (std::size_t i = 0; i < 4; ++i) identity[i * 5] = 1.0F;
    ParameterSources sources;
    sources.data[static_cast<int>(ParameterKind::kQueryKernel)] = zero.data();
    sources.data[static_cast<int>(ParameterKind::kKeyKernel)] = zero.data();
    sources.data[static_cast<int>(ParameterKind::kValueKernel)] = identity.data();
    sources.data[static_cast<int>(ParameterKind::kOutputKernel)] = identity.data();
    ASSERT_TRUE(layer_.SetParameters(sources).ok());
  }
  std::vector<float> Of(const std::vector<float>& tokens, bool causal) {
    Call call(layer_.config(), 1, static_cast<std::int32_t>(tokens.size() / 4),
              static_cast<std::int32_t>(tokens.size() / 4), 0);
    call.query = call.key = call.value = tokens;
    call.args.attention.causal = causal ? 1 : 0;
    return RunLayer(layer_, call, 2, false).output;
  }
  MultiHeadAttention layer_;
};

TEST_F(MeanLayer, SplitsAndMergesHeadsWithoutMixingTokens) {
  EXPECT_EQ(Of({1, 2, 3, 4, 5, 6, 7, 8}, false), (std::vector<float>{3, 4, 5, 6, 3, 4, 5, 6}));
  EXPECT_EQ(Of({1, 2, 3, 4, 5, 6, 7, 8}, true), (std::vector<float>{1, 2, 3, 4, 3, 4, 5, 6}));
}

TEST_F(MeanLayer, TakesOneTensorForQueryKeyAndValue) {
  const std::vector<float> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  Guarded output(8);
  MultiHeadAttentionArgs args;
  args.attention.batch = 1;
  args.attention.queries = args.attention.keys = 2;
  args.query = args.key = args.value = tokens.data();
  args.output = output.data();
  ThreadPool pool(1);
  ASSERT_TRUE(Forward(layer_, args, pool).ok());
  EXPECT_EQ(output.Values(), (std::vector<float>{3, 4, 5, 6, 3, 4, 5, 6}));
}

TEST(MultiHeadAttention, PermutingTheTokensPermutesTheRows) {
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(12, 3)).ok());
  Randomize(layer, 1);
  Call call(layer.config(), 1, 5, 5, 2);
  call.key = call.value = call.query;
  const std::vector<float> before = RunLayer(layer, call, 1, false).output;
  const std::vector<float> tokens = call.query;
  for (std::size_t i = 0; i < 5; ++i) {
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>((4 - i) * 12), 12,
                call.query.begin() + static_cast<std::ptrdiff_t>(i * 12));
  }
  call.key = call.value = call.query;
  const std::vector<float> after = RunLayer(layer, call, 1, false).output;
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t e = 0; e < 12; ++e) EXPECT_NEAR(after[i * 12 + e], before[(4 - i) * 12 + e], 1e-6F);
  }
}

TEST(MultiHeadAttention, EveryKindOfLayerMatchesTheDefinition) {
  for (const LayerScore score :
       {LayerScore::kScaledDot, LayerScore::kDot, LayerScore::kCosine, LayerScore::kAdditive}) {
    for (const MergeKind merge : {MergeKind::kConcat, MergeKind::kSum}) {
      for (const std::int32_t taps : {0, 1, 2, 3}) {
        for (const std::int32_t bias : {0, 1}) {
          MultiHeadAttentionConfig config = Config(12, 4);
          config.score = score;
          config.merge = merge;
          config.bias = bias;
          if (taps > 0) {
            config.projection = ProjectionKind::kConvolution;
            config.kernel_size = taps;
            config.causal_convolution = bias;
          }
          MultiHeadAttention layer;
          ASSERT_TRUE(layer.Init(config).ok());
          Randomize(layer, 7);
          Call call(layer.config(), 2, 5, 9, 8);
          ExpectDefinition(layer, call,
                           "score " + std::to_string(static_cast<int>(score)) + ", merge " +
                               std::to_string(static_cast<int>(merge)) + ", taps " + std::to_string(taps));
        }
      }
    }
  }
}

TEST(MultiHeadAttention, EverySizeMayDiffer) {
  for (const std::int32_t kv_heads : {1, 2, 3, 6}) {
    for (const MergeKind merge : {MergeKind::kConcat, MergeKind::kSum}) {
      MultiHeadAttentionConfig config = Config(10, 6);
      config.kv_heads = kv_heads;
      config.head_dim = 7;
      config.value_head_dim = 5;
      config.key_dim = 11;
      config.value_dim = 3;
      config.output_dim = 13;
      config.merge = merge;
      MultiHeadAttention layer;
      ASSERT_TRUE(layer.Init(config).ok());
      Randomize(layer, 11);
      Call call(layer.config(), 3, 17, 70, 12);
      call.args.attention.causal = 1;
      ExpectDefinition(layer, call, "kv heads " + std::to_string(kv_heads));
    }
  }
}

TEST(MultiHeadAttention, RotaryEmbeddingFollowsTheOffset) {
  for (const LayerScore score : {LayerScore::kScaledDot, LayerScore::kCosine, LayerScore::kAdditive}) {
    for (const std::int32_t dim : {2, 4, 8}) {
      for (const std::int32_t interleaved : {0, 1}) {
        MultiHeadAttentionConfig config = Config(16, 2);
        config.score = score;
        config.rope.dim = dim;
        config.rope.base = 500.0F;
        config.rope.interleaved = interleaved;
        if (dim == 8) config.rope.scaling = {RotaryRule::kYarn, 4.0F, 6.0F, 1.0F, 8.0F, 1.25F};
        MultiHeadAttention layer;
        ASSERT_TRUE(layer.Init(config).ok());
        Randomize(layer, 21);
        Call plain(layer.config(), 2, 6, 6, 22);
        ExpectDefinition(layer, plain, "positions from 0");
        Call lengths(layer.config(), 2, 4, 9, 23);
        lengths.kv_lengths = {9, 5};
        lengths.q_lengths = {2, 4};
        lengths.args.attention.causal = 1;
        ExpectDefinition(layer, lengths, "positions from the lengths");
        Call offsets(layer.config(), 2, 4, 9, 24);
        offsets.offsets = {3, -1};
        ExpectDefinition(layer, offsets, "positions given");
      }
    }
  }
}

TEST(MultiHeadAttention, ADecodingStepEqualsTheLastRowOfTheWholePass) {
  MultiHeadAttentionConfig config = Config(16, 2);
  config.rope.dim = 8;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(config).ok());
  Call whole(layer.config(), 1, 7, 7, 31);
  whole.key = whole.value = whole.query;
  whole.args.attention.causal = 1;
  const std::vector<float> all = RunLayer(layer, whole, 1, false).output;
  Call step(layer.config(), 1, 1, 7, 31);
  step.query.assign(whole.query.end() - 16, whole.query.end());
  step.key = step.value = whole.query;
  const std::vector<float> last = RunLayer(layer, step, 1, false).output;
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(last[i], all[6 * 16 + i], 1e-6F);
}

TEST(MultiHeadAttention, NothingLeaksFromHiddenTokens) {
  MultiHeadAttentionConfig config = Config(8, 2);
  config.kv_heads = 1;
  for (const LayerScore score : {LayerScore::kScaledDot, LayerScore::kCosine, LayerScore::kAdditive}) {
    config.score = score;
    MultiHeadAttention layer;
    ASSERT_TRUE(layer.Init(config).ok());
    Randomize(layer, 41);
    Call call(layer.config(), 2, 3, 6, 42);
    call.padding = {1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0};
    call.kv_lengths = {4, 3};
    ExpectDefinition(layer, call, "padding");
    const std::vector<float> before = RunLayer(layer, call, 1, false).output;
    for (std::size_t token = 0; token < 12; ++token) {
      if (call.padding[token] != 0) continue;
      std::fill_n(call.key.begin() + static_cast<std::ptrdiff_t>(token * 8), 8, kNaN);
      std::fill_n(call.value.begin() + static_cast<std::ptrdiff_t>(token * 8), 8,
                  std::numeric_limits<float>::infinity());
    }
    EXPECT_TRUE(SameBits(RunLayer(layer, call, 1, false).output, before));
  }
}

TEST(MultiHeadAttention, ARowThatSeesNothingIsTheOutputBiasAndPaddingIsZero) {
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(8, 2)).ok());
  Randomize(layer, 51);
  Call call(layer.config(), 2, 3, 4, 52);
  call.kv_lengths = {0, 4};
  call.q_lengths = {2, 1};
  ExpectDefinition(layer, call, "lengths");
  std::vector<float> bias(8);
  layer.GetParameter(ParameterKind::kOutputBias, bias.data());
  const std::vector<float> output = RunLayer(layer, call, 1, false).output;
  EXPECT_EQ(std::vector<float>(output.begin(), output.begin() + 8), bias);
  for (std::size_t i = 2 * 8; i < 3 * 8; ++i) EXPECT_EQ(output[i], 0.0F);
  for (std::size_t i = 4 * 8; i < 6 * 8; ++i) EXPECT_EQ(output[i], 0.0F);
}

TEST(MultiHeadAttention, AZeroVectorHasNoDirection) {
  MultiHeadAttentionConfig config = Config(4, 1);
  config.score = LayerScore::kCosine;
  config.bias = 0;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(config).ok());
  Call call(layer.config(), 1, 2, 3, 61);
  std::fill(call.query.begin(), call.query.end(), 0.0F);
  const std::vector<float> weights = RunLayer(layer, call, 1, true).weights;
  for (const float weight : weights) EXPECT_FLOAT_EQ(weight, 1.0F / 3.0F);
}

TEST(MultiHeadAttention, AcceptsSizesOfZero) {
  MultiHeadAttentionConfig config = Config(6, 2);
  config.rope.dim = 2;
  config.score = LayerScore::kCosine;
  config.merge = MergeKind::kSum;
  config.projection = ProjectionKind::kConvolution;
  config.kernel_size = 3;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(config).ok());
  Randomize(layer, 71);
  const std::int32_t sizes[][3] = {{0, 2, 3}, {2, 0, 3}, {2, 3, 0}, {0, 0, 0}};
  for (const auto& size : sizes) {
    Call call(layer.config(), size[0], size[1], size[2], 72);
    ExpectDefinition(layer, call,
                     std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]));
  }
}

TEST(MultiHeadAttention, AverageAndSelectedWeightsGoTogether) {
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(9, 3)).ok());
  Call call(layer.config(), 2, 5, 7, 81);
  const Outputs all = RunLayer(layer, call, 1, true);
  const std::vector<std::int32_t> heads = {2, 0};
  Guarded output(2 * 5 * 9);
  Guarded selected(2 * 2 * 5 * 7);
  Guarded average(2 * 5 * 7);
  MultiHeadAttentionArgs args = call.args;
  args.output = output.data();
  args.attention.weights = selected.data();
  args.attention.weight_heads = heads.data();
  args.attention.weight_head_count = 2;
  args.average_weights = average.data();
  ThreadPool pool(2);
  ASSERT_TRUE(Forward(layer, args, pool).ok());
  EXPECT_TRUE(SameBits(average.Values(), all.average));
  EXPECT_TRUE(SameBits(output.Values(), all.output));
  EXPECT_TRUE(selected.MarginsIntact());
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t i = 0; i < 35; ++i) {
        EXPECT_EQ(selected[(b * 2 + n) * 35 + i], all.weights[(b * 3 + static_cast<std::size_t>(heads[n])) * 35 + i]);
      }
    }
  }
  args.attention.weights = nullptr;  // the mean alone
  args.attention.weight_heads = nullptr;
  args.attention.weight_head_count = 0;
  Guarded alone(2 * 5 * 7);
  args.average_weights = alone.data();
  ASSERT_TRUE(Forward(layer, args, pool).ok());
  EXPECT_TRUE(SameBits(alone.Values(), all.average));
}

TEST(MultiHeadAttention, RunsInSlicesWhileTheLayerChanges) {
  MultiHeadAttention* const layer = new MultiHeadAttention;
  ASSERT_TRUE(layer->Init(Config(64, 4)).ok());
  Call call(layer->config(), 2, 90, 90, 91);
  const std::vector<float> expected = RunLayer(*layer, call, 2, false).output;
  Guarded output(2 * 90 * 64);
  MultiHeadAttentionArgs args = call.args;
  args.output = output.data();
  ThreadPool pool(2);
  MultiHeadAttentionForward forward;
  Job job;
  ASSERT_TRUE(forward.Prepare(*layer, args, pool, job).ok());
  EXPECT_FALSE(job.Run(pool, 0.0));
  Randomize(*layer, 92);
  job.Run(pool, 0.0);
  delete layer;
  while (!job.Run(pool, 0.0)) {
  }
  EXPECT_TRUE(SameBits(output.Values(), expected));
}

TEST(MultiHeadAttention, ReportsWhatIsMissingAndGoesOn) {
  ThreadPool pool(1);
  MultiHeadAttention empty;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(4, 2)).ok());
  Call call(layer.config(), 1, 2, 2, 95);
  const std::vector<float> expected = RunLayer(layer, call, 1, false).output;
  Guarded output(8);
  const auto argument = [&](const MultiHeadAttention& of, const MultiHeadAttentionArgs& args) {
    Job job;
    MultiHeadAttentionForward forward;
    const Status status = forward.Prepare(of, args, pool, job);
    EXPECT_FALSE(status.ok());
    return std::string(status.argument);
  };
  MultiHeadAttentionArgs args = call.args;
  EXPECT_EQ(argument(empty, args), "layer");
  EXPECT_EQ(argument(layer, args), "output");
  args.output = output.data();
  args.query = nullptr;
  EXPECT_EQ(argument(layer, args), "query");
  args = call.args;
  args.output = output.data();
  args.key = nullptr;
  EXPECT_EQ(argument(layer, args), "key");
  args = call.args;
  args.output = output.data();
  args.value = nullptr;
  EXPECT_EQ(argument(layer, args), "value");
  args = call.args;
  args.output = output.data();
  args.attention.queries = -1;
  EXPECT_EQ(argument(layer, args), "query");
  args.attention.queries = std::numeric_limits<std::int32_t>::max();  // its strides do not fit 32 bits
  EXPECT_EQ(argument(layer, args), "query");
  args = call.args;
  args.output = output.data();
  const std::vector<std::int32_t> too_long = {3};
  args.attention.kv_lengths = too_long.data();
  EXPECT_FALSE(Forward(layer, args, pool).ok());
  EXPECT_TRUE(SameBits(RunLayer(layer, call, 1, false).output, expected));
}

}  // namespace
}  // namespace headwise
