// Tests: the layer's configuration, shapes, start values, and parameters set and given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "guarded.h"
#include "headwise/multi_head_attention.h"
#include "random_values.h"

namespace headwise {
namespace {

using headwise::testing::Guarded;
using headwise::testing::RandomValues;
using headwise::testing::SameBits;

MultiHeadAttentionConfig Config(std::int32_t embed_dim, std::int32_t heads) {
  MultiHeadAttentionConfig config;
  config.embed_dim = embed_dim;
  config.heads = heads;
  return config;
}

std::vector<float> Read(const MultiHeadAttention& layer, ParameterKind kind) {
  Guarded values(layer.Shape(kind).elements());
  layer.GetParameter(kind, values.data());
  EXPECT_TRUE(values.MarginsIntact());
  return values.Values();
}

std::vector<std::int32_t> Axes(const MultiHeadAttentionConfig& config, ParameterKind kind) {
  const ParameterShape shape = ShapeOfParameter(config, kind);
  return {shape.axes, shape.axes + shape.rank};
}

TEST(LayerConfig, FillsInDefaults) {
  MultiHeadAttentionConfig config = Config(12, 3);
  ASSERT_TRUE(ResolveConfig(config).ok());
  EXPECT_EQ(config.kv_heads, 3);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.value_head_dim, 4);
  EXPECT_EQ(config.key_dim, 12);
  EXPECT_EQ(config.value_dim, 12);
  EXPECT_EQ(config.output_dim, 12);
  config = Config(10, 3);
  config.head_dim = 5;
  config.key_dim = 7;
  ASSERT_TRUE(ResolveConfig(config).ok());
  EXPECT_EQ(config.value_head_dim, 5);
  EXPECT_EQ(config.value_dim, 7);
}

TEST(LayerConfig, NamesWhatDoesNotFit) {
  const auto refused = [](auto change) {
    MultiHeadAttentionConfig config = Config(12, 4);
    change(config);
    const Status status = ResolveConfig(config);
    return status.ok() ? std::string("accepted") : std::string(status.argument);
  };
  using C = MultiHeadAttentionConfig;
  EXPECT_EQ(refused([](C&) {}), "accepted");
  EXPECT_EQ(refused([](C& c) { c.embed_dim = 0; }), "embedDim");
  EXPECT_EQ(refused([](C& c) { c.heads = 0; }), "numHeads");
  EXPECT_EQ(refused([](C& c) { c.heads = 5; }), "numHeads");
  EXPECT_EQ(refused([](C& c) { c.kv_heads = 3; }), "numKvHeads");
  EXPECT_EQ(refused([](C& c) { c.kv_heads = 8; }), "numKvHeads");
  EXPECT_EQ(refused([](C& c) { c.kv_heads = -1; }), "numKvHeads");
  EXPECT_EQ(refused([](C& c) { c.head_dim = -1; }), "headDim");
  EXPECT_EQ(refused([](C& c) { c.value_head_dim = -1; }), "valueHeadDim");
  EXPECT_EQ(refused([](C& c) { c.key_dim = -1; }), "keyDim");
  EXPECT_EQ(refused([](C& c) { c.value_dim = -1; }), "valueDim");
  EXPECT_EQ(refused([](C& c) { c.output_dim = -1; }), "outputDim");
  EXPECT_EQ(refused([](C& c) { c.merge = static_cast<MergeKind>(2); }), "merge");
  EXPECT_EQ(refused([](C& c) { c.projection = static_cast<ProjectionKind>(-1); }), "projection");
  EXPECT_EQ(refused([](C& c) { c.score = static_cast<LayerScore>(4); }), "score");
  EXPECT_EQ(refused([](C& c) {
              c.projection = ProjectionKind::kConvolution;
              c.kernel_size = 0;
            }),
            "projection.kernelSize");
  EXPECT_EQ(refused([](C& c) { c.rope.dim = 3; }), "rope.dim");
  EXPECT_EQ(refused([](C& c) { c.rope.dim = 4; }), "rope.dim");
  EXPECT_EQ(refused([](C& c) {
              c.rope.dim = 2;
              c.rope.base = 0.0F;
            }),
            "rope.base");
  EXPECT_EQ(refused([](C& c) { c.head_dim = std::numeric_limits<std::int32_t>::max(); }), "headDim");
}

TEST(LayerParameters, HaveTheDocumentedShapes) {
  using Shape = std::vector<std::int32_t>;
  MultiHeadAttentionConfig config = Config(10, 6);
  config.kv_heads = 2;
  config.head_dim = 7;
  config.value_head_dim = 5;
  config.key_dim = 11;
  config.value_dim = 3;
  config.output_dim = 13;
  config.score = LayerScore::kAdditive;
  ASSERT_TRUE(ResolveConfig(config).ok());
  EXPECT_EQ(Axes(config, ParameterKind::kQueryKernel), (Shape{10, 6, 7}));
  EXPECT_EQ(Axes(config, ParameterKind::kQueryBias), (Shape{6, 7}));
  EXPECT_EQ(Axes(config, ParameterKind::kKeyKernel), (Shape{11, 2, 7}));
  EXPECT_EQ(Axes(config, ParameterKind::kKeyBias), (Shape{2, 7}));
  EXPECT_EQ(Axes(config, ParameterKind::kValueKernel), (Shape{3, 2, 5}));
  EXPECT_EQ(Axes(config, ParameterKind::kValueBias), (Shape{2, 5}));
  EXPECT_EQ(Axes(config, ParameterKind::kOutputKernel), (Shape{6, 5, 13}));
  EXPECT_EQ(Axes(config, ParameterKind::kOutputBias), (Shape{13}));
  EXPECT_EQ(Axes(config, ParameterKind::kScoreKernel), (Shape{6, 7}));
  config.merge = MergeKind::kSum;
  config.projection = ProjectionKind::kConvolution;
  config.kernel_size = 3;
  config.bias = 0;
  config.score = LayerScore::kDot;
  EXPECT_EQ(Axes(config, ParameterKind::kQueryKernel), (Shape{3, 10, 6, 7}));
  EXPECT_EQ(Axes(config, ParameterKind::kOutputKernel), (Shape{1, 5, 13}));
  EXPECT_EQ(Axes(config, ParameterKind::kQueryBias), Shape{});
  EXPECT_EQ(Axes(config, ParameterKind::kOutputBias), Shape{});
  EXPECT_EQ(Axes(config, ParameterKind::kScoreKernel), Shape{});
}

TEST(LayerParameters, StartGlorotUniformWithTheFansOfTheSeparateKernels) {
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(64, 8)).ok());
  for (const ParameterKind kind : {ParameterKind::kQueryKernel, ParameterKind::kKeyKernel, ParameterKind::kValueKernel,
                                   ParameterKind::kOutputKernel}) {
    float largest = 0.0F;
    for (const float value : Read(layer, kind)) largest = std::max(largest, std::fabs(value));
    EXPECT_GT(largest, 0.20F);
    EXPECT_LE(largest, 0.21651F);
  }
  for (const ParameterKind kind : {ParameterKind::kQueryBias, ParameterKind::kOutputBias}) {
    for (const float value : Read(layer, kind)) EXPECT_EQ(value, 0.0F);
  }
  EXPECT_NE(Read(layer, ParameterKind::kQueryKernel), Read(layer, ParameterKind::kKeyKernel));

  MultiHeadAttentionConfig convolution = Config(64, 8);
  convolution.projection = ProjectionKind::kConvolution;
  convolution.kernel_size = 3;
  MultiHeadAttention wide;
  ASSERT_TRUE(wide.Init(convolution).ok());
  float largest = 0.0F;
  for (const float value : Read(wide, ParameterKind::kQueryKernel)) largest = std::max(largest, std::fabs(value));
  EXPECT_GT(largest, 0.12F);
  EXPECT_LE(largest, 0.12501F);  // sqrt(6 / (3 * 128))
}

TEST(LayerParameters, TheSeedDecides) {
  MultiHeadAttentionConfig config = Config(16, 2);
  config.seed_low = 5;
  MultiHeadAttention a;
  MultiHeadAttention b;
  ASSERT_TRUE(a.Init(config).ok());
  ASSERT_TRUE(b.Init(config).ok());
  EXPECT_TRUE(SameBits(Read(a, ParameterKind::kValueKernel), Read(b, ParameterKind::kValueKernel)));
  config.seed_high = 1;
  ASSERT_TRUE(b.Init(config).ok());
  EXPECT_FALSE(SameBits(Read(a, ParameterKind::kValueKernel), Read(b, ParameterKind::kValueKernel)));
}

TEST(LayerParameters, ComeBackAsTheVeryFloats) {
  MultiHeadAttentionConfig config = Config(10, 2);
  config.value_head_dim = 3;
  config.output_dim = 9;
  config.score = LayerScore::kAdditive;
  config.projection = ProjectionKind::kConvolution;
  config.kernel_size = 2;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(config).ok());
  RandomValues random(3);
  std::vector<std::vector<float>> values;
  ParameterSources sources;
  for (int i = 0; i < kParameterKinds; ++i) {
    values.push_back(random.Floats(layer.Shape(static_cast<ParameterKind>(i)).elements()));
    values.back()[0] = -0.0F;
    values.back()[1] = std::numeric_limits<float>::infinity();
    sources.data[i] = values.back().data();
  }
  ASSERT_TRUE(layer.SetParameters(sources).ok());
  for (int i = 0; i < kParameterKinds; ++i) {
    EXPECT_TRUE(SameBits(Read(layer, static_cast<ParameterKind>(i)), values[static_cast<std::size_t>(i)])) << i;
  }
}

TEST(LayerParameters, AreSetAllOrNone) {
  MultiHeadAttentionConfig config = Config(4, 2);
  config.bias = 0;
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(config).ok());
  const std::vector<float> before = Read(layer, ParameterKind::kQueryKernel);
  const std::vector<float> ones(16, 1.0F);
  ParameterSources sources;
  sources.data[static_cast<int>(ParameterKind::kQueryKernel)] = ones.data();
  sources.data[static_cast<int>(ParameterKind::kOutputBias)] = ones.data();  // the layer has none
  EXPECT_EQ(layer.SetParameters(sources).code, StatusCode::kInvalidValue);
  EXPECT_TRUE(SameBits(Read(layer, ParameterKind::kQueryKernel), before));
}

TEST(LayerParameters, SurviveARefusedStart) {
  MultiHeadAttention layer;
  ASSERT_TRUE(layer.Init(Config(4, 2)).ok());
  const std::vector<float> before = Read(layer, ParameterKind::kQueryKernel);
  EXPECT_FALSE(layer.Init(Config(4, 3)).ok());
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  const Status status = layer.Init(Config(kMax, kMax));
  EXPECT_EQ(status.code, StatusCode::kOutOfMemory);
  EXPECT_GT(status.bytes_wanted, std::uint64_t{1} << 60U);
  EXPECT_EQ(layer.config().embed_dim, 4);
  EXPECT_TRUE(SameBits(Read(layer, ParameterKind::kQueryKernel), before));
}

}  // namespace
}  // namespace headwise
