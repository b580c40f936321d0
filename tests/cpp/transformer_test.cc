// Tests: the Transformer: gradients of its parameters against finite differences on every variant, the wiring of norms and
// residuals, causality, padding, threads, a task that it learns, and what it refuses.
#include "headwise/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "guarded.h"
#include "random_values.h"
#include "tolerance.h"
#include "transformer_case.h"

namespace headwise::testing {
namespace {

struct Batch {
  Ids source, target, labels;
  Floats vectors;
  std::vector<std::uint8_t> mask;
  TransformerBatch args;

  Batch(const TransformerConfig& c, std::int32_t batch, std::int32_t s, std::int32_t l, std::uint32_t seed) {
    RandomValues random(seed);
    for (std::int32_t i = 0; i < batch * s; ++i) source.push_back(random.Integer(0, c.source_vocabulary - 1));
    for (std::int32_t i = 0; i < batch * l; ++i) target.push_back(random.Integer(0, c.target_vocabulary - 1));
    const std::int32_t rows = c.kind == TransformerKind::kEncoder ? batch * s : batch * l;
    for (std::int32_t i = 0; i < rows; ++i) labels.push_back(random.Integer(-1, c.target_vocabulary - 1));
    labels[0] = 1;
    vectors = random.Floats(std::int64_t{batch} * s * c.source_width);
    mask.assign(source.size(), 1);
    mask.back() = 0;
    args.batch = batch;
    args.source_length = s;
    args.target_length = l;
  }
  const TransformerBatch& Args() {
    args.source = source.data();
    args.source_vectors = vectors.data();
    args.source_mask = mask.data();
    args.target = target.data();
    args.labels = labels.data();
    return args;
  }
};

Floats Logits(const Transformer& model, Batch& batch, ThreadPool& pool, Floats* weights = nullptr) {
  const TransformerConfig& c = model.config();
  const std::int32_t length = c.kind == TransformerKind::kEncoder ? batch.args.source_length : batch.args.target_length;
  Guarded logits(std::int64_t{batch.args.batch} * length * c.target_vocabulary);
  if (weights != nullptr) {
    weights->assign(static_cast<std::size_t>(TransformerWeightFloats(c, batch.args)), NAN);
  }
  TransformerForward forward;
  Job job;
  EXPECT_TRUE(
      forward.Prepare(model, batch.Args(), logits.data(), weights == nullptr ? nullptr : weights->data(), pool, job)
          .ok());
  job.Run(pool);
  EXPECT_TRUE(logits.MarginsIntact());
  return logits.Values();
}

TrainingResult Train(Transformer& model, Batch& batch, const TrainingOptions& options, ThreadPool& pool) {
  TransformerStep step;
  Job job;
  const Status status = step.Prepare(model, batch.Args(), options, pool, job);
  EXPECT_TRUE(status.ok()) << status.argument;
  if (!status.ok()) return {};
  job.Run(pool);
  return step.result();
}

// Nothing moves: gradients only.
TrainingOptions Still() {
  TrainingOptions options;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.rate = 0.0F;
  options.smoothing = 0.1F;
  return options;
}

void ExpectGradients(const TransformerConfig& config, const std::string& what) {
  ThreadPool pool(2);
  Transformer model;
  ASSERT_TRUE(model.Init(config, 0).ok()) << what;
  Batch batch(config, 2, 5, 4, 3);
  Train(model, batch, Still(), pool);
  ParameterArena& arena = model.parameters();
  const Floats gradients(arena.gradients(), arena.gradients() + arena.floats());
  RandomValues random(1);
  constexpr float kStep = 0x1p-8F;
  for (std::int32_t p = 0; p < arena.size(); ++p) {
    for (int n = 0; n < 2; ++n) {
      const auto i = random.Integer(0, static_cast<std::int32_t>(arena.parameter(p).count) - 1);
      float& x = arena.value(p)[i];
      const float kept = x;
      const auto at = [&](float by) {
        x = kept + by;
        return Train(model, batch, Still(), pool).loss;
      };
      const double slope = (8.0 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12.0 * kStep);
      x = kept;
      ASSERT_NEAR(gradients[static_cast<std::size_t>(arena.parameter(p).offset + i)], slope,
                  kTransformerGradientTolerance)
          << what << ", " << arena.parameter(p).name << "[" << i << "]";
    }
  }
}

TEST(Transformer, GradientsAgreeWithFiniteDifferences) {
  for (const TransformerKind kind :
       {TransformerKind::kEncoderDecoder, TransformerKind::kDecoder, TransformerKind::kEncoder}) {
    TransformerConfig c = SmallConfig(kind);
    // Smooth, so that differences mean something; ReLU has its own test.
    c.activation = ActivationKind::kGelu;
    const std::string name = "kind " + std::to_string(static_cast<int>(kind));
    ExpectGradients(c, name);
    c.norm_first = 1;
    c.final_norm = 1;
    c.norm = TransformerNorm::kRms;
    c.position = PositionKind::kLearned;
    c.dropout = 0.2F;
    c.tied = kind == TransformerKind::kEncoder ? 0 : 1;
    c.source_width = kind == TransformerKind::kEncoder ? 3 : 0;
    c.activation = ActivationKind::kGeluTanh;
    ExpectGradients(c, name + ", pre-norm, RMS, learned positions, dropout, tied or patches");
    c.norm = TransformerNorm::kBatch;
    c.dropout = 0.0F;
    c.position = PositionKind::kNone;
    c.scale_embedding = 0;
    ExpectGradients(c, name + ", batch norm");
    c = SmallConfig(kind);
    c.activation = ActivationKind::kGelu;
    c.kv_heads = 1;
    c.position = PositionKind::kRotary;
    ExpectGradients(c, name + ", rotary, one key head");
    c.embed_dim = 24;
    c.heads = 4;
    c.kv_heads = 2;
    c.norm_first = 1;
    c.rope.dim = 4;
    c.rope.interleaved = 1;
    c.rope.base = 20.0F;
    c.rope.scaling = {RotaryRule::kYarn, 4.0F, 6.0F, 1.0F, 8.0F, 1.25F};
    ExpectGradients(c, name + ", rotary with scaling, two key heads of four");
  }
}

// Attention between projections of known sizes: positions enter by differences alone.
TEST(Transformer, RotaryPositionsAreThoseOfDifferences) {
  ThreadPool pool(1);
  TransformerConfig c = SmallConfig(TransformerKind::kEncoder);
  c.position = PositionKind::kRotary;
  c.kv_heads = 1;
  Transformer model;
  ASSERT_TRUE(model.Init(c, -1).ok());
  const ParameterArena& arena = model.parameters();
  const ParameterArena::Parameter& packed = arena.parameter(arena.Find("encoder.layers.0.self_attn.in_proj_weight"));
  EXPECT_EQ(packed.shape[0], 8 + 4 + 4);
  Batch batch(c, 1, 6, 0, 9);
  batch.source = {3, 1, 4, 3, 1, 4};
  // With each half seeing only itself, both halves come out the same.
  batch.mask = {1, 1, 1, 0, 0, 0};
  const Floats first = Logits(model, batch, pool);
  batch.mask = {0, 0, 0, 1, 1, 1};
  const Floats second = Logits(model, batch, pool);
  ExpectNear({second.begin() + 27, second.end()}, {first.begin(), first.begin() + 27}, kDecodingTolerance, "shifted");
  batch.mask = {1, 1, 1, 1, 1, 1};
  batch.source = {1, 3, 4, 3, 1, 4};
  EXPECT_GT(std::fabs(Logits(model, batch, pool)[45] - second[45]), 1e-4F);
}

// Output projection and second feed-forward matrix 0: what is left is residuals and norms. x = [3, 1].
TEST(Transformer, NormsAndResidualsAreWhereTheyBelong) {
  ThreadPool pool(1);
  for (const std::int32_t norm_first : {0, 1}) {
    TransformerConfig c = SmallConfig(TransformerKind::kEncoder);
    c.embed_dim = 2;
    c.heads = 1;
    c.source_width = 2;
    c.target_vocabulary = 2;
    c.position = PositionKind::kNone;
    c.norm_first = norm_first;
    c.final_norm = norm_first;
    Transformer model;
    ASSERT_TRUE(model.Init(c, -1).ok());
    ParameterArena& arena = model.parameters();
    for (const char* name : {"source_projection.weight", "generator.weight"}) {
      std::copy_n(std::begin({1.0F, 0.0F, 0.0F, 1.0F}), 4, arena.value(arena.Find(name)));
    }
    for (std::int32_t p = 0; p < arena.size(); ++p) {
      const std::string name = arena.parameter(p).name;
      if (name.find("out_proj.weight") != std::string::npos || name.find("linear2.weight") != std::string::npos) {
        std::fill_n(arena.value(p), arena.parameter(p).count, 0.0F);
      }
    }
    Batch batch(c, 1, 1, 1, 1);
    batch.vectors = {3.0F, 1.0F};
    batch.mask = {1};
    const Floats y = Logits(model, batch, pool);
    EXPECT_NEAR(y[0], 0.999995, 1e-6);
    EXPECT_NEAR(y[1], -0.999995, 1e-6);
  }
}

TEST(Transformer, SeesNeitherTheFutureNorPadding) {
  ThreadPool pool(2);
  TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
  Transformer model;
  ASSERT_TRUE(model.Init(c, -1).ok());
  Batch batch(c, 1, 6, 5, 2);
  Floats weights;
  const Floats before = Logits(model, batch, pool, &weights);
  batch.target[3] = (batch.target[3] + 1) % c.target_vocabulary;
  batch.source[5] = (batch.source[5] + 1) % c.source_vocabulary;  // masked
  const Floats after = Logits(model, batch, pool);
  const std::size_t seen = 3 * 9;
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + seen, after.begin()));
  EXPECT_FALSE(std::equal(before.begin() + seen, before.end(), after.begin() + seen));
  // Every row of every layer's and head's weights adds up to 1.
  ASSERT_EQ(weights.size(), 2U * (2 * 36 + 2 * 25 + 2 * 30));
  for (std::size_t row = 0; row < 2 * 2 * 6; ++row) {
    double sum = 0.0;
    for (std::size_t j = 0; j < 6; ++j) sum += weights[row * 6 + j];
    EXPECT_NEAR(sum, 1.0, 1e-6);
    EXPECT_EQ(weights[row * 6 + 5], 0.0F);
  }
}

TEST(Transformer, BitsDoNotDependOnThreads) {
  Floats values[2];
  double losses[2] = {};
  for (int n = 0; n < 2; ++n) {
    ThreadPool pool(n == 0 ? 1 : 3);
    TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
    c.dropout = 0.1F;
    Transformer model;
    ASSERT_TRUE(model.Init(c, 2).ok());
    Batch batch(c, 3, 9, 8, 4);
    TrainingOptions options;
    options.optimizer.kind = OptimizerKind::kAdamW;
    options.max_norm = 1.0F;
    for (options.step = 1; options.step <= 3; ++options.step) losses[n] = Train(model, batch, options, pool).loss;
    values[n].assign(model.parameters().values(), model.parameters().values() + model.parameters().floats());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_TRUE(SameBits(values[0], values[1]));
}

// Reversing six tokens: needs positions, cross-attention and the decoder's own past.
TEST(Transformer, LearnsToReverse) {
  ThreadPool pool(2);
  TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
  c.embed_dim = 16;
  c.feed_forward = 32;
  c.encoder_layers = 1;
  c.decoder_layers = 1;
  c.norm_first = 1;
  c.final_norm = 1;
  Transformer model;
  ASSERT_TRUE(model.Init(c, 2).ok());
  RandomValues random(6);
  TrainingOptions options;
  options.rate = 0.01F;
  TrainingResult result;
  for (options.step = 1; options.step <= 400; ++options.step) {
    Batch batch(c, 16, 4, 4, 100U + static_cast<std::uint32_t>(options.step));
    batch.mask.assign(batch.mask.size(), 1);
    for (std::size_t b = 0; b < 16; ++b) {
      for (std::size_t i = 0; i < 4; ++i) {
        batch.labels[b * 4 + i] = batch.source[b * 4 + 3 - i];
        batch.target[b * 4 + i] = i == 0 ? 8 : batch.labels[b * 4 + i - 1];
      }
    }
    result = Train(model, batch, options, pool);
  }
  EXPECT_LT(result.loss, 0.2);
  EXPECT_GE(result.correct, 60);  // of 64, on sequences that it has mostly not seen
}

TEST(Transformer, WhatIsNotFiniteChangesNothing) {
  ThreadPool pool(1);
  const TransformerConfig c = SmallConfig(TransformerKind::kDecoder);
  Transformer model;
  ASSERT_TRUE(model.Init(c, 2).ok());
  ParameterArena& arena = model.parameters();
  Batch batch(c, 1, 3, 3, 2);
  arena.value(arena.Find("decoder.layers.1.linear1.bias"))[2] = NAN;
  const Floats before(arena.values(), arena.values() + arena.floats());
  const TrainingResult result = Train(model, batch, {}, pool);
  EXPECT_FALSE(result.applied);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_TRUE(SameBits(before, {arena.values(), arena.values() + arena.floats()}));
  EXPECT_STREQ(result.module, "decoder.layers.1.linear1");
}

// For every poisoned parameter the step names its module and changes nothing at all.
TEST(Transformer, WhatIsNotFiniteIsNamed) {
  ThreadPool pool(2);
  for (const TransformerNorm norm : {TransformerNorm::kLayer, TransformerNorm::kBatch}) {
    TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
    c.norm = norm;
    c.position = PositionKind::kLearned;
    c.norm_first = norm == TransformerNorm::kBatch ? 1 : 0;
    c.final_norm = c.norm_first;
    c.dropout = 0.1F;
    Transformer model;
    ASSERT_TRUE(model.Init(c, 2).ok());
    ParameterArena& arena = model.parameters();
    const ParameterArena& buffers = model.buffers();
    Batch batch(c, 2, 4, 3, 2);
    const auto values = [&] {
      Floats all(arena.values(), arena.values() + arena.floats());
      all.insert(all.end(), arena.moment(0), arena.moment(0) + arena.floats());
      all.insert(all.end(), buffers.values(), buffers.values() + buffers.floats());
      return all;
    };
    for (std::int32_t p = 0; p < arena.size(); ++p) {
      const std::string name = arena.parameter(p).name;
      std::string module = name.substr(0, name.rfind('.'));
      if (module.ends_with(".out_proj")) module.resize(module.rfind('.'));
      if (module.ends_with("_position")) module.replace(module.find("_position"), 9, "_embedding");
      const Floats good(arena.value(p), arena.value(p) + arena.parameter(p).count);
      std::fill_n(arena.value(p), arena.parameter(p).count, INFINITY);
      const Floats before = values();
      const TrainingResult result = Train(model, batch, {}, pool);
      EXPECT_FALSE(result.applied) << name;
      EXPECT_EQ(module, result.module) << name;
      EXPECT_TRUE(SameBits(before, values())) << name;
      std::copy(good.begin(), good.end(), arena.value(p));
    }
    const Floats before = values();
    EXPECT_TRUE(Train(model, batch, {}, pool).applied);
    EXPECT_FALSE(SameBits(before, values()));
  }
}

// The forward pass is finite: a gain of 0 lets nothing through to a huge matrix. In the backward pass a huge gradient meets
// that matrix, and the result spreads through the residual.
TEST(Transformer, GradientsThatAreNotFiniteAreNamed) {
  ThreadPool pool(1);
  Transformer model;
  TransformerConfig c = SmallConfig(TransformerKind::kDecoder);
  c.norm_first = 1;
  ASSERT_TRUE(model.Init(c, 2).ok());
  ParameterArena& arena = model.parameters();
  const auto fill = [&](const char* name, float value) {
    const std::int32_t p = arena.Find(name);
    for (std::int64_t i = 0; i < arena.parameter(p).count; ++i) arena.value(p)[i] = (i % 3 == 0 ? -1.0F : 1.0F) * value;
  };
  fill("generator.weight", 1e20F);
  fill("decoder.layers.0.norm2.weight", 0.0F);
  fill("decoder.layers.0.linear1.weight", 1e20F);
  std::fill_n(arena.value(arena.Find("decoder.layers.0.linear1.bias")), c.feed_forward, 1.0F);
  Batch batch(c, 2, 1, 3, 2);
  const TrainingResult result = Train(model, batch, {}, pool);
  EXPECT_FALSE(result.applied);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_FALSE(std::isfinite(result.gradient_norm));
  EXPECT_STREQ(result.module, "decoder.layers.0.linear1");
}

TEST(Transformer, AStepInPartsIsTheStepOverTheWholeBatch) {
  ThreadPool pool(2);
  for (const TransformerKind kind :
       {TransformerKind::kEncoderDecoder, TransformerKind::kDecoder, TransformerKind::kEncoder}) {
    const TransformerConfig c = SmallConfig(kind);
    Transformer whole, parts;
    ASSERT_TRUE(whole.Init(c, 2).ok());
    ASSERT_TRUE(parts.Init(c, 2).ok());
    Batch batch(c, 5, 4, 3, 8);
    TrainingOptions options;
    options.optimizer.kind = OptimizerKind::kSgd;
    options.rate = 0.5F;
    options.smoothing = 0.1F;
    options.max_norm = 0.7F;
    options.counted = static_cast<std::int32_t>(
        batch.labels.size() - static_cast<std::size_t>(std::count(batch.labels.begin(), batch.labels.end(), -1)));
    const TrainingResult expected = Train(whole, batch, options, pool);
    const TransformerBatch all = batch.Args();
    const std::int32_t length = kind == TransformerKind::kEncoder ? 4 : 3;
    options.parts = 3;
    TrainingResult sum, last;
    for (const std::int32_t first : {0, 2, 4}) {
      TransformerBatch some = all;
      some.batch = std::min(5 - first, 2);
      some.source += first * 4;
      some.source_mask += first * 4;
      some.target += first * 3;
      some.labels += first * length;
      TransformerStep step;
      Job job;
      ASSERT_TRUE(step.Prepare(parts, some, options, pool, job).ok());
      job.Run(pool);
      last = step.result();
      sum.loss += last.loss;
      sum.counted += last.counted;
      sum.correct += last.correct;
      ++options.part;
    }
    EXPECT_NEAR(sum.loss, expected.loss, 1e-6);
    EXPECT_EQ(sum.counted, expected.counted);
    EXPECT_EQ(sum.correct, expected.correct);
    EXPECT_NEAR(last.gradient_norm, expected.gradient_norm, 1e-5);
    const ParameterArena& a = whole.parameters();
    const ParameterArena& b = parts.parameters();
    ExpectNear({b.values(), b.values() + b.floats()}, {a.values(), a.values() + a.floats()}, kDecodingTolerance,
               "parts");
    // In order only, and not on what was given up.
    options.part = 1;
    TransformerStep step;
    Job job;
    EXPECT_STREQ(step.Prepare(parts, all, options, pool, job).argument, "part");
  }
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  ThreadPool pool(1);
  TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
  Transformer model;
  ASSERT_TRUE(model.Init(c, 0).ok());
  const auto argument = [&](Batch& batch) {
    TransformerStep step;
    Job job;
    return std::string(step.Prepare(model, batch.Args(), {}, pool, job).argument);
  };
  Batch batch(c, 1, 3, 3, 2);
  batch.source[1] = 7;
  EXPECT_EQ(argument(batch), "source");
  batch.source[1] = 0;
  batch.target[1] = -1;
  EXPECT_EQ(argument(batch), "target");
  batch.target[1] = 0;
  batch.labels[1] = 9;
  EXPECT_EQ(argument(batch), "targets");
  Batch longer(c, 1, 11, 3, 2);
  EXPECT_EQ(argument(longer), "source");
  c.heads = 3;
  Transformer other;
  EXPECT_STREQ(other.Init(c, 0).argument, "heads");
  c.heads = 2;
  c.kv_heads = 3;
  EXPECT_STREQ(other.Init(c, 0).argument, "kv_heads");
  c.kv_heads = 2;
  c.position = PositionKind::kRotary;
  c.rope.dim = 6;
  EXPECT_STREQ(other.Init(c, 0).argument, "rope.dim");
  c.rope.dim = 4;
  c.dropout = 1.0F;
  EXPECT_STREQ(other.Init(c, 0).argument, "dropout");
}

}  // namespace
}  // namespace headwise::testing
