// Tests: what a Transformer's attention may see of a batch: masks and biases of each kind of attention, padding of the target
// and of what the decoder reads, an open target; forward by equal ways to say the same, backward by finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "headwise/transformer.h"
#include "random_values.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kBatch = 2;
constexpr std::int32_t kHeads = 2;
constexpr std::int32_t kSource = 5;
constexpr std::int32_t kTarget = 4;
constexpr std::int32_t kVocabulary = 7;

TransformerConfig ConfigOf(TransformerKind kind, std::int32_t encoder_layers = 2) {
  TransformerConfig c;
  c.kind = kind;
  c.embed_dim = 8;
  c.heads = kHeads;
  c.feed_forward = 12;
  c.encoder_layers = kind == TransformerKind::kDecoder ? 0 : encoder_layers;
  c.decoder_layers = kind == TransformerKind::kEncoder ? 0 : 2;
  c.source_vocabulary = c.target_vocabulary = kVocabulary;
  c.most_positions = 8;
  c.activation = ActivationKind::kGelu;
  c.final_norm = 1;
  c.seed_low = 11;
  return c;
}

// Tokens and labels; masks are set by the tests.
struct Batch {
  Ids source, target, labels;
  TransformerBatch args;

  explicit Batch(const TransformerConfig& c) {
    RandomValues random(21);
    for (std::int32_t i = 0; i < kBatch * kSource; ++i) source.push_back(random.Integer(0, kVocabulary - 1));
    for (std::int32_t i = 0; i < kBatch * kTarget; ++i) target.push_back(random.Integer(0, kVocabulary - 1));
    const std::int32_t rows = kBatch * (c.kind == TransformerKind::kEncoder ? kSource : kTarget);
    for (std::int32_t i = 0; i < rows; ++i) labels.push_back(random.Integer(0, kVocabulary - 1));
    args.batch = kBatch;
    args.source_length = kSource;
    args.target_length = kTarget;
    args.source = source.data();
    args.target = target.data();
    args.labels = labels.data();
  }
};

// A mask for each batch and a bias for each head, with hidden elements and a row that sees nothing.
struct Scope {
  Bytes mask;
  Floats bias;
  TransformerScope args;

  Scope(std::int32_t rows, std::int32_t keys, std::uint32_t seed) {
    RandomValues random(seed);
    for (std::int32_t i = 0; i < kBatch * rows * keys; ++i) mask.push_back(random.Integer(0, 3) > 0 ? 1 : 0);
    std::fill_n(mask.begin() + keys, keys, std::uint8_t{0});
    bias = random.Floats(std::int64_t{kHeads} * rows * keys);
    bias[static_cast<std::size_t>(keys) + 1] = -std::numeric_limits<float>::infinity();
    args.mask = mask.data();
    args.mask_strides = {rows * keys, 0, keys, 1};
    args.bias = bias.data();
    args.bias_strides = {0, rows * keys, keys, 1};
  }
};

Floats Logits(const Transformer& model, const TransformerBatch& batch) {
  ThreadPool pool(2);
  const std::int32_t length = model.config().kind == TransformerKind::kEncoder ? kSource : kTarget;
  Floats logits(static_cast<std::size_t>(kBatch) * length * kVocabulary, NAN);
  TransformerForward forward;
  Job job;
  EXPECT_TRUE(forward.Prepare(model, batch, logits.data(), nullptr, pool, job).ok());
  job.Run(pool);
  return logits;
}

// Gradients only: nothing moves.
double Loss(Transformer& model, const TransformerBatch& batch, ThreadPool& pool) {
  TrainingOptions options;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.rate = 0.0F;
  TransformerStep step;
  Job job;
  const Status status = step.Prepare(model, batch, options, pool, job);
  EXPECT_TRUE(status.ok()) << status.argument;
  if (!status.ok()) return NAN;
  job.Run(pool);
  return step.result().loss;
}

void ExpectGradients(const TransformerConfig& config, const TransformerBatch& batch, const std::string& what) {
  ThreadPool pool(2);
  Transformer model;
  ASSERT_TRUE(model.Init(config, 0).ok()) << what;
  Loss(model, batch, pool);
  ParameterArena& arena = model.parameters();
  const Floats gradients(arena.gradients(), arena.gradients() + arena.floats());
  RandomValues random(3);
  constexpr float kStep = 0x1p-8F;
  for (std::int32_t p = 0; p < arena.size(); ++p) {
    const auto i = random.Integer(0, static_cast<std::int32_t>(arena.parameter(p).count) - 1);
    float& x = arena.value(p)[i];
    const float kept = x;
    const auto at = [&](float by) {
      x = kept + by;
      return Loss(model, batch, pool);
    };
    const double slope = (8.0 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12.0 * kStep);
    x = kept;
    ASSERT_NEAR(gradients[static_cast<std::size_t>(arena.parameter(p).offset + i)], slope,
                kTransformerGradientTolerance)
        << what << ", " << arena.parameter(p).name << "[" << i << "]";
  }
}

TEST(TransformerScope, GradientsAgreeWithFiniteDifferences) {
  Scope source(kSource, kSource, 1);
  Scope target(kTarget, kTarget, 2);
  Scope memory(kTarget, kSource, 3);
  const Bytes source_mask = {1, 1, 1, 1, 0, 1, 1, 0, 1, 1};
  const Bytes memory_mask = {0, 1, 1, 1, 1, 1, 1, 1, 0, 0};
  const Bytes target_mask = {1, 0, 1, 1, 1, 1, 1, 0};
  for (const TransformerKind kind :
       {TransformerKind::kEncoderDecoder, TransformerKind::kDecoder, TransformerKind::kEncoder}) {
    for (const std::int32_t open : {0, 1}) {
      const TransformerConfig config = ConfigOf(kind, kind == TransformerKind::kEncoderDecoder && open != 0 ? 0 : 2);
      Batch batch(config);
      batch.args.source_mask = source_mask.data();
      batch.args.memory_mask = memory_mask.data();
      batch.args.target_mask = target_mask.data();
      batch.args.target_open = open;
      batch.args.source_scope = source.args;
      batch.args.target_scope = target.args;
      batch.args.memory_scope = memory.args;
      ExpectGradients(config, batch.args,
                      "kind " + std::to_string(static_cast<int>(kind)) + ", open " + std::to_string(open));
    }
  }
}

TEST(TransformerScope, EqualWaysToSayTheSame) {
  const TransformerConfig config = ConfigOf(TransformerKind::kEncoderDecoder);
  Transformer model;
  ASSERT_TRUE(model.Init(config, -1).ok());
  const Bytes hidden_source = {1, 1, 0, 1, 1, 1, 1, 1, 1, 0};
  const Bytes hidden_target = {1, 1, 1, 1, 1, 0, 1, 1};
  Bytes lower;
  Floats infinities;
  for (std::int32_t i = 0; i < kTarget; ++i) {
    for (std::int32_t j = 0; j < kTarget; ++j) {
      lower.push_back(j <= i ? 1 : 0);
      infinities.push_back(j <= i ? 0.0F : -std::numeric_limits<float>::infinity());
    }
  }
  const auto expect_near = [&](const TransformerBatch& a, const TransformerBatch& b, const char* what) {
    const Floats x = Logits(model, a);
    const Floats y = Logits(model, b);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-5) << what;
  };
  const Batch plain(config);

  TransformerBatch open = plain.args;
  open.target_open = 1;
  EXPECT_NE(Logits(model, open), Logits(model, plain.args));
  open.target_scope.mask = lower.data();
  open.target_scope.mask_strides = {0, 0, kTarget, 1};
  expect_near(open, plain.args, "a triangle of booleans");
  open.target_scope = {};
  open.target_scope.bias = infinities.data();
  open.target_scope.bias_strides = {0, 0, kTarget, 1};
  expect_near(open, plain.args, "a triangle of infinities");

  // Padding is a mask with keys alone, and what the decoder reads goes by the source's unless it has its own.
  TransformerBatch padded = plain.args;
  padded.source_mask = hidden_source.data();
  padded.target_mask = hidden_target.data();
  TransformerBatch masked = plain.args;
  masked.source_scope.mask = masked.memory_scope.mask = hidden_source.data();
  masked.source_scope.mask_strides = masked.memory_scope.mask_strides = {kSource, 0, 0, 1};
  masked.target_scope.mask = hidden_target.data();
  masked.target_scope.mask_strides = {kTarget, 0, 0, 1};
  expect_near(padded, masked, "padding");
  EXPECT_NE(Logits(model, padded), Logits(model, plain.args));
  masked.memory_mask = hidden_source.data();
  masked.memory_scope = {};
  expect_near(padded, masked, "padding of the memory");
}

}  // namespace
}  // namespace headwise::testing
