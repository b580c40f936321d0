// Tests: see attention_case.h.
#include "attention_case.h"

#include <algorithm>
#include <sstream>

namespace headwise::testing {
namespace {

int Pick(RandomValues& random, std::initializer_list<int> values) {
  return *(values.begin() + random.Integer(0, static_cast<std::int32_t>(values.size()) - 1));
}
bool Chance(RandomValues& random, int percent) { return random.Integer(1, 100) <= percent; }

BroadcastStrides RandomBroadcast(RandomValues& random, const AttentionArgs& a, std::int64_t* count) {
  const bool column = Chance(random, 80);
  const bool row = Chance(random, 70);
  const bool head = Chance(random, 50);
  const bool batch = Chance(random, 50);
  BroadcastStrides s;
  std::int32_t size = 1;
  s.column = column ? 1 : 0;
  size *= column ? a.keys : 1;
  s.row = row ? size : 0;
  size *= row ? a.queries : 1;
  s.head = head ? size : 0;
  size *= head ? a.heads : 1;
  s.batch = batch ? size : 0;
  size *= batch ? a.batch : 1;
  *count = size;
  return s;
}

}  // namespace

AttentionCase AttentionCase::Random(std::uint32_t seed) {
  RandomValues random(seed);
  AttentionCase c;
  const int g = Pick(random, {1, 1, 2, 3});
  const int h = g * Pick(random, {1, 1, 2, 4});
  const int l = Pick(random, {1, 1, 2, 5, 7, 8, 9, 13, 30, 63, 64, 65, 67, 128});
  const int s = Pick(random, {1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 129, 200, 257});
  const int d = Pick(random, {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 80});
  const int dv = Pick(random, {1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 72});
  c.Shape(Pick(random, {1, 1, 2, 3}), h, g, l, s, d, dv);
  c.Layout(Chance(random, 50));
  c.Fill(random, random.Uniform(0.5F, 2.0F));
  AttentionArgs& a = c.args;
  if (Chance(random, 20)) a.scale = random.Uniform(-1.0F, 1.0F);
  if (Chance(random, 20)) a.softcap = random.Uniform(0.3F, 5.0F);
  std::int64_t count = 0;
  if (Chance(random, 30)) {
    a.bias_strides = RandomBroadcast(random, a, &count);
    c.bias = random.Floats(count, -2.0F, 2.0F);
    if (Chance(random, 50)) {
      for (float& b : c.bias) b = Chance(random, 20) ? -std::numeric_limits<float>::infinity() : b;
    }
  }
  if (Chance(random, 40)) {
    a.mask_strides = RandomBroadcast(random, a, &count);
    const int percent = Pick(random, {0, 10, 50, 95, 100});
    for (std::int64_t i = 0; i < count; ++i) c.mask.push_back(Chance(random, percent) ? 1 : 0);
  }
  if (Chance(random, 15)) {
    // Bits in the place of bytes: rows of the last axis of their own.
    a.mask_bits = 1;
    const bool column = Chance(random, 80);
    const bool row = Chance(random, 70);
    const bool head = Chance(random, 50);
    const std::int32_t bytes = column ? (a.keys + 7) / 8 : 1;
    const std::int32_t rows = row ? a.queries : 1;
    a.mask_strides = {head ? rows * bytes * a.heads : 0, head ? rows * bytes : 0, row ? bytes : 0, column ? 1 : 0};
    c.mask.resize(static_cast<std::size_t>(bytes * rows * (head ? a.heads * a.batch : 1)));
    for (std::uint8_t& bits : c.mask) bits = static_cast<std::uint8_t>(random.Integer(0, 255));
  }
  if (Chance(random, 15)) {
    a.block_size = Pick(random, {1, 5, 16, 64, 128, 300});
    const int percent = Pick(random, {10, 50, 100});
    c.block_rows.push_back(0);
    for (int r = 0; r * a.block_size < a.queries; ++r) {
      for (int column = 0; column * a.block_size < a.keys; ++column) {
        if (Chance(random, percent)) c.block_columns.push_back(column);
      }
      c.block_rows.push_back(static_cast<std::int32_t>(c.block_columns.size()));
    }
  }
  if (Chance(random, 25)) {
    const int percent = Pick(random, {20, 80, 100});
    for (int i = 0; i < a.batch * a.keys; ++i) c.padding.push_back(Chance(random, percent) ? 1 : 0);
  }
  if (Chance(random, 25)) {
    for (int b = 0; b < a.batch; ++b) c.kv_lengths.push_back(random.Integer(0, a.keys));
  }
  if (Chance(random, 20)) {
    for (int b = 0; b < a.batch; ++b) c.q_lengths.push_back(random.Integer(0, a.queries));
  }
  a.causal = Chance(random, 40) ? 1 : 0;
  if (Chance(random, 25)) {
    for (int b = 0; b < a.batch; ++b) c.offsets.push_back(random.Integer(-a.queries, a.keys));
  }
  if (Chance(random, 25)) {
    a.window_left = Pick(random, {-1, 0, 1, 5, 63, 100});
    a.window_right = Pick(random, {-1, 0, 2, 64});
  }
  if (Chance(random, 20)) c.alibi = random.Floats(a.heads, 0.0F, 0.5F);
  if (Chance(random, 20)) c.sinks = random.Floats(a.heads, -2.0F, 2.0F);
  if (Chance(random, 20)) {
    a.dropout_rate = random.Uniform(0.05F, 0.9F);
    a.dropout_seed_low = seed * 7919U;
    a.dropout_seed_high = seed;
  }
  if (Chance(random, 10)) {
    a.score_kind = ScoreKind::kAdditive;
    c.additive = random.Floats(std::int64_t{a.heads} * a.head_dim);
  }
  c.want_weights = Chance(random, 40);
  if (c.want_weights && Chance(random, 30)) {
    for (int n = random.Integer(1, a.heads); n > 0; --n) c.weight_heads.push_back(random.Integer(0, a.heads - 1));
    std::sort(c.weight_heads.begin(), c.weight_heads.end());
    c.weight_heads.erase(std::unique(c.weight_heads.begin(), c.weight_heads.end()), c.weight_heads.end());
  }
  if (Chance(random, 40)) a.score_stage = static_cast<ScoreStage>(random.Integer(1, 3));
  c.want_log_sum_exp = Chance(random, 50);
  if (Chance(random, 10) && a.block_size == 0) c.MakeRing(random);
  return c;
}

// Slots of the keys there are, written once or several times over.
void AttentionCase::MakeRing(RandomValues& random) {
  args.sink_tokens = random.Integer(0, std::min(args.keys - 1, 5));
  args.ring_size = args.keys - args.sink_tokens;
  kv_lengths.clear();
  offsets.clear();
  for (int b = 0; b < args.batch; ++b) {
    ring_totals.push_back(random.Integer(0, 3 * args.keys));
    kv_lengths.push_back(std::min(ring_totals.back(), args.keys));
    offsets.push_back(ring_totals.back() - random.Integer(0, args.queries));
  }
}

std::string AttentionCase::Describe() const {
  std::ostringstream o;
  const AttentionArgs& a = args;
  o << "B" << a.batch << " H" << a.heads << " G" << a.kv_heads << " L" << a.queries << " S" << a.keys << " D"
    << a.head_dim << " Dv" << a.value_dim << " scale " << a.scale << " softcap " << a.softcap << " causal " << a.causal
    << " window " << a.window_left << "," << a.window_right << " bias " << bias.size() << " mask " << mask.size()
    << " bits " << a.mask_bits << " blocks of " << a.block_size << " padding " << padding.size() << " kv_lengths "
    << kv_lengths.size() << " q_lengths " << q_lengths.size() << " offsets " << offsets.size() << " alibi "
    << alibi.size() << " sinks " << sinks.size() << " dropout " << a.dropout_rate << " additive " << additive.size()
    << " ring " << args.ring_size << " stage " << static_cast<int>(a.score_stage) << " weights " << want_weights
    << " heads " << weight_heads.size();
  return o.str();
}

double Distance(const std::vector<float>& got, const std::vector<float>& expected) {
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double x = got[i];
    const double y = expected[i];
    if (x == y || (std::isnan(x) && std::isnan(y) && !Guarded::Poisoned(got[i]))) continue;
    const double distance = std::fabs(x - y) / std::max(1.0, std::fabs(y));
    worst = std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(worst, distance);
  }
  return worst;
}

}  // namespace headwise::testing
