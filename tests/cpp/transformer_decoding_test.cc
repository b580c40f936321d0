// Tests: a Transformer's target read token by token: the logits are those of a pass over the whole target, whatever the
// positions and norms; rows that are selected go their own way; a step that is given up has changed nothing.
#include "headwise/transformer_decoding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guarded.h"
#include "random_values.h"
#include "tolerance.h"
#include "transformer_case.h"

namespace headwise::testing {
namespace {

constexpr std::int32_t kSource = 5;

// One source and several targets, both as they are decoded and as a whole batch.
class Decoded {
 public:
  Decoded(const TransformerConfig& config, std::int32_t rows, std::int32_t capacity) : rows_(rows) {
    EXPECT_TRUE(model_.Init(config, -1).ok());
    EXPECT_TRUE(decoding_.Init(model_, rows, capacity).ok());
    RandomValues random(7);
    // Off their start values, so that none can be left out unseen.
    for (std::int32_t p = 0; p < model_.parameters().size(); ++p) {
      for (std::int64_t i = 0; i < model_.parameters().parameter(p).count; ++i) {
        model_.parameters().value(p)[i] += random.Uniform(-0.1F, 0.1F);
      }
    }
    source_ = TokenIds(random, kSource, config.source_vocabulary);
    vectors_ = random.Floats(std::int64_t{kSource} * config.source_width);
    mask_ = {1, 1, 0, 1, 1};
    targets_.resize(static_cast<std::size_t>(rows));
  }

  TransformerDecodeArgs Args(const Ids& tokens, float* logits) {
    TransformerDecodeArgs args;
    args.model = &model_;
    args.decoding = &decoding_;
    if (model_.config().kind == TransformerKind::kEncoderDecoder && decoding_.length() == 0) {
      args.source_length = kSource;
      args.source = source_.data();
      args.source_vectors = vectors_.data();
      args.source_mask = mask_.data();
    }
    args.target_length = static_cast<std::int32_t>(tokens.size()) / rows_;
    args.target = tokens.data();
    args.logits = logits;
    return args;
  }

  Status Step(const Ids& tokens, Floats* logits) {
    Guarded out(std::int64_t{rows_} * model_.config().target_vocabulary);
    TransformerDecodeStep step;
    Job job;
    const TransformerDecodeArgs args = Args(tokens, out.data());
    if (Status status = step.Prepare(args, pool_, job); !status.ok()) return status;
    job.Run(pool_);
    EXPECT_TRUE(out.MarginsIntact());
    *logits = out.Values();
    for (std::int32_t row = 0; row < rows_; ++row) {
      Ids& target = targets_[static_cast<std::size_t>(row)];
      const auto* from = tokens.data() + row * args.target_length;
      target.insert(target.end(), from, from + args.target_length);
    }
    return Status::Ok();
  }

  // Behind the last token of each target, from one pass over all of it.
  Floats Whole() {
    const TransformerConfig& c = model_.config();
    TransformerBatch batch;
    Ids source, target;
    Floats vectors;
    std::vector<std::uint8_t> mask;
    for (const Ids& ids : targets_) {
      source.insert(source.end(), source_.begin(), source_.end());
      vectors.insert(vectors.end(), vectors_.begin(), vectors_.end());
      mask.insert(mask.end(), mask_.begin(), mask_.end());
      target.insert(target.end(), ids.begin(), ids.end());
    }
    batch.batch = rows_;
    batch.source_length = kSource;
    batch.target_length = decoding_.length();
    batch.source = source.data();
    batch.source_vectors = vectors.data();
    batch.source_mask = mask.data();
    batch.target = target.data();
    const auto width = static_cast<std::size_t>(c.target_vocabulary);
    Floats all(target.size() * width), last;
    TransformerForward forward;
    Job job;
    EXPECT_TRUE(forward.Prepare(model_, batch, all.data(), nullptr, pool_, job).ok());
    job.Run(pool_);
    for (std::size_t row = 0; row < targets_.size(); ++row) {
      const auto end = all.begin() + static_cast<std::ptrdiff_t>((row + 1) * targets_[row].size() * width);
      last.insert(last.end(), end - static_cast<std::ptrdiff_t>(width), end);
    }
    return last;
  }

  Status Select(const Ids& rows) {
    const Status status = decoding_.Select(rows.data(), static_cast<std::int32_t>(rows.size()), pool_);
    if (!status.ok()) return status;
    std::vector<Ids> selected;
    for (const std::int32_t row : rows) selected.push_back(targets_[static_cast<std::size_t>(row)]);
    targets_ = selected;
    rows_ = static_cast<std::int32_t>(rows.size());
    return status;
  }

  TransformerDecoding& decoding() { return decoding_; }
  ThreadPool& pool() { return pool_; }

 private:
  std::int32_t rows_;
  ThreadPool pool_{2};
  Transformer model_;
  TransformerDecoding decoding_;
  Ids source_;
  Floats vectors_;
  std::vector<std::uint8_t> mask_;
  std::vector<Ids> targets_;
};

void ExpectAsWhole(const TransformerConfig& config, const std::string& what) {
  Decoded decoded(config, 2, 8);
  RandomValues random(2);
  Floats logits;
  const auto read = [&](std::int32_t tokens) {
    ASSERT_TRUE(decoded.Step(TokenIds(random, tokens, config.target_vocabulary), &logits).ok()) << what;
    ExpectNear(logits, decoded.Whole(), kDecodingTolerance, what + ", " + std::to_string(decoded.decoding().length()));
  };
  read(2 * 3);
  read(2);
  read(2);
  // Row 1 twice, and row 0 behind it.
  ASSERT_TRUE(decoded.Select({1, 1, 0}).ok());
  read(3 * 2);
  read(3);
  EXPECT_EQ(decoded.decoding().length(), 8);
}

TEST(TransformerDecoding, LogitsAreThoseOfThePassOverTheWholeTarget) {
  for (const TransformerKind kind : {TransformerKind::kDecoder, TransformerKind::kEncoderDecoder}) {
    for (const PositionKind position : {PositionKind::kSinusoidal, PositionKind::kLearned, PositionKind::kNone}) {
      for (const std::int32_t norm_first : {0, 1}) {
        TransformerConfig c = SmallConfig(kind);
        c.position = position;
        c.norm_first = norm_first;
        c.final_norm = norm_first;
        const std::string name = "kind " + std::to_string(static_cast<int>(kind)) + ", positions " +
                                 std::to_string(static_cast<int>(position)) + ", pre-norm " +
                                 std::to_string(norm_first);
        ExpectAsWhole(c, name);
      }
    }
    TransformerConfig c = SmallConfig(kind);
    c.norm = TransformerNorm::kBatch;
    c.tied = 1;
    c.source_width = kind == TransformerKind::kEncoderDecoder ? 3 : 0;
    c.activation = ActivationKind::kGelu;
    ExpectAsWhole(c, "batch norm, tied, patches");
    c.norm = TransformerNorm::kRms;
    c.dropout = 0.5F;  // of training only
    ExpectAsWhole(c, "RMS norm");
    c.position = PositionKind::kRotary;
    c.kv_heads = 1;
    c.norm_first = 1;
    ExpectAsWhole(c, "rotary, one key head");
    c.rope.dim = 2;
    c.rope.interleaved = 1;
    c.rope.scaling = {RotaryRule::kYarn, 4.0F, 6.0F, 1.0F, 8.0F, 1.25F};
    ExpectAsWhole(c, "rotary with scaling");
  }
}

TEST(TransformerDecoding, AStepThatIsGivenUpHasChangedNothing) {
  const TransformerConfig config = SmallConfig(TransformerKind::kEncoderDecoder);
  Decoded decoded(config, 1, 6);
  Floats logits(static_cast<std::size_t>(config.target_vocabulary));
  const Ids begun = {1, 2};
  // Each time a little further.
  for (int slices = 0; slices < 40; slices += 3) {
    TransformerDecodeStep step;
    Job job;
    ASSERT_TRUE(step.Prepare(decoded.Args(begun, logits.data()), decoded.pool(), job).ok());
    bool done = false;
    for (int i = 0; i < slices && !done; ++i) done = job.Run(decoded.pool(), 0.0);
    ASSERT_FALSE(done);
    EXPECT_EQ(decoded.decoding().length(), 0);
  }
  ASSERT_TRUE(decoded.Step(begun, &logits).ok());
  ExpectNear(logits, decoded.Whole(), kDecodingTolerance, "after steps given up");
}

TEST(TransformerDecoding, RefusesWhatDoesNotFit) {
  ThreadPool pool(1);
  Transformer encoder, model;
  ASSERT_TRUE(encoder.Init(SmallConfig(TransformerKind::kEncoder), -1).ok());
  TransformerConfig c = SmallConfig(TransformerKind::kEncoderDecoder);
  ASSERT_TRUE(model.Init(c, -1).ok());
  TransformerDecoding decoding;
  EXPECT_STREQ(decoding.Init(encoder, 1, 4).argument, "kind");
  EXPECT_STREQ(decoding.Init(model, 0, 4).argument, "rows");
  EXPECT_STREQ(decoding.Init(model, 1, 11).argument, "capacity");
  Decoded decoded(c, 2, 4);
  Floats logits(18);
  const auto argument = [&](const Ids& tokens, auto&& change) {
    TransformerDecodeArgs args = decoded.Args(tokens, logits.data());
    change(args);
    TransformerDecodeStep step;
    Job job;
    return std::string(step.Prepare(args, pool, job).argument);
  };
  const auto same = [](TransformerDecodeArgs&) {};
  EXPECT_EQ(argument({1, 9}, same), "target");
  EXPECT_EQ(argument(Ids(10, 1), same), "target");
  EXPECT_EQ(argument({1, 1}, [](TransformerDecodeArgs& args) { args.source_length = 0; }), "source");
  c.decoder_layers = 1;
  Transformer other;
  ASSERT_TRUE(other.Init(c, -1).ok());
  EXPECT_EQ(argument({1, 1}, [&](TransformerDecodeArgs& args) { args.model = &other; }), "decoding");
  EXPECT_STREQ(decoded.Select({2}).argument, "rows");
  ASSERT_TRUE(decoded.Step({1, 2, 3, 4, 5, 6}, &logits).ok());
  EXPECT_EQ(argument({1, 1, 1, 1}, same), "target");
  ASSERT_TRUE(decoded.Step({1, 2}, &logits).ok());
}

}  // namespace
}  // namespace headwise::testing
