// Tests: random lives of a cache beside a plain model of it: a list of tokens a row, attended to by loops in double. Steps with
// and without queries, reading, trimming, dropping, forking; rings, sink tokens, rotary embeddings, all cells.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headwise/kv_cache.h"
#include "random_values.h"
#include "tolerance.h"

namespace headwise::testing {
namespace {

constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kHeads = 4;
constexpr std::int32_t kDim = 6;
constexpr std::int32_t kRopeDim = 4;
constexpr std::int32_t kValueDim = 5;
constexpr std::int32_t kTableRows = 400;
constexpr double kScale = 0.7;

enum class Rope { kNone, kPlain, kDynamic, kTables };

struct Token {
  std::vector<float> key;    // [G,D], turned
  std::vector<float> value;  // [G,Dv]
  std::int32_t position;
  bool held;
};
using Row = std::vector<Token>;

struct Plan {
  std::int32_t window = 0;
  std::int32_t sinks = 0;
  std::int32_t capacity = 0;
  CellType cells = CellType::kFloat32;
  Rope rope = Rope::kNone;
  bool in_cache = false;  // sink positions
};

// What the cache is to do, by the words of its documentation.
class Model {
 public:
  Model(const Plan& plan, const std::vector<float>& cos, const std::vector<float>& sin)
      : plan_(plan), cos_(&cos), sin_(&sin) {}

  std::vector<Row> rows;

  // Elements (i, i + 2) of the first four are a pair.
  std::vector<double> Turned(const float* x, std::int32_t position, std::int32_t text) const {
    std::vector<double> y(x, x + kDim);
    if (plan_.rope == Rope::kNone) return y;
    for (std::int32_t pair = 0; pair < kRopeDim / 2; ++pair) {
      double base = 50.0;
      if (plan_.rope == Rope::kDynamic) {
        const double longer = std::max(text, 16) / 16.0;
        base *= std::pow(3.0 * longer - 2.0, kRopeDim / (kRopeDim - 2.0));
      }
      const double angle = position * std::pow(base, -2.0 * pair / kRopeDim);
      const auto place = static_cast<std::size_t>(position * (kRopeDim / 2) + pair);
      const double c = plan_.rope == Rope::kTables ? (*cos_)[place] : std::cos(angle);
      const double s = plan_.rope == Rope::kTables ? (*sin_)[place] : std::sin(angle);
      const auto at = static_cast<std::size_t>(pair);
      y[at] = x[pair] * c - x[pair + 2] * s;
      y[at + 2] = x[pair] * s + x[pair + 2] * c;
    }
    return y;
  }

  std::int32_t Next(std::int32_t b) const {
    const Row& row = rows[static_cast<std::size_t>(b)];
    return row.empty() ? 0 : row.back().position + 1;
  }

  void Append(std::int32_t b, Token token) {
    Row& row = rows[static_cast<std::size_t>(b)];
    const std::int32_t place = static_cast<std::int32_t>(row.size());
    row.push_back(std::move(token));
    if (plan_.window == 0) return;
    const std::int32_t lost = place - (plan_.capacity - plan_.sinks);
    if (lost >= plan_.sinks) row[static_cast<std::size_t>(lost)].held = false;
  }

  // Whether the last `window` of the first `length` tokens of a row are there.
  static bool Whole(const Row& row, std::int32_t window, std::int32_t sinks) {
    const auto length = static_cast<std::int32_t>(row.size());
    for (std::int32_t place = std::max(sinks, length - window); place < length; ++place) {
      if (!row[static_cast<std::size_t>(place)].held) return false;
    }
    return true;
  }

  // Query at `place`; only keys below `end` are there, with `causal` up to the place. False: a key that it sees is lost.
  bool Attend(std::int32_t b, const float* q, std::int32_t place, std::int32_t end, std::int32_t position,
              std::int32_t text, bool causal, std::vector<double>& out) const {
    const Row& row = rows[static_cast<std::size_t>(b)];
    out.assign(kHeads * kValueDim, 0.0);
    for (std::int32_t h = 0; h < kHeads; ++h) {
      const std::vector<double> turned = Turned(q + h * kDim, position, text);
      const std::int32_t near = plan_.in_cache ? std::min(position, plan_.sinks + plan_.window - 1) : position;
      const std::vector<double> of_sinks = Turned(q + h * kDim, near, text);
      std::vector<double> sums(kValueDim, 0.0);
      double total = 0.0;
      const auto g = static_cast<std::size_t>(h / (kHeads / kKvHeads));
      for (std::int32_t j = 0; j < (causal ? std::min(end, place + 1) : end); ++j) {
        const Token& token = row[static_cast<std::size_t>(j)];
        if (plan_.window > 0 && j >= plan_.sinks && j <= place - plan_.window) continue;
        if (!token.held) return false;
        const std::vector<double>& query = j < plan_.sinks ? of_sinks : turned;
        double score = 0.0;
        for (std::size_t d = 0; d < kDim; ++d) score += query[d] * token.key[g * kDim + d];
        const double weight = std::exp(score * kScale);
        total += weight;
        for (std::size_t d = 0; d < kValueDim; ++d) sums[d] += weight * token.value[g * kValueDim + d];
      }
      for (std::size_t d = 0; d < kValueDim; ++d) {
        out[static_cast<std::size_t>(h) * kValueDim + d] = total > 0.0 ? sums[d] / total : 0.0;
      }
    }
    return true;
  }

 private:
  Plan plan_;
  const std::vector<float>* cos_;
  const std::vector<float>* sin_;
};

// A cache and its model, and what happens to both.
class Life {
 public:
  Life(const Plan& plan, std::uint32_t seed) : plan_(plan), random_(seed), model_(plan, cos_, sin_) {
    cos_ = random_.Floats(kTableRows * kRopeDim / 2);
    sin_ = random_.Floats(kTableRows * kRopeDim / 2);
    KeyValueCacheConfig config;
    config.batch = batch_ = random_.Integer(1, 3);
    config.kv_heads = kKvHeads;
    config.head_dim = kDim;
    config.value_dim = kValueDim;
    config.capacity = plan.capacity;
    config.cell_type = plan.cells;
    config.window = plan.window;
    config.sink_tokens = plan.sinks;
    config.sink_positions = plan.in_cache ? SinkPositions::kCache : SinkPositions::kText;
    if (plan.rope != Rope::kNone) {
      config.rope.dim = kRopeDim;
      config.rope.base = 50.0F;
    }
    std::vector<float> passing_cos = cos_;
    std::vector<float> passing_sin = sin_;
    if (plan.rope == Rope::kDynamic) config.rope.scaling = {RotaryRule::kDynamic, 3.0F, 16.0F};
    if (plan.rope == Rope::kTables) {
      config.rope.cos = passing_cos.data();
      config.rope.sin = passing_sin.data();
      config.rope.table_rows = kTableRows;
    }
    cache_ = std::make_unique<KeyValueCache>();
    EXPECT_TRUE(cache_->Init(config).ok());
    std::fill(passing_cos.begin(), passing_cos.end(), 9.0F);  // the cache has copies
    model_.rows.resize(static_cast<std::size_t>(batch_));
  }

  void Run(int events) {
    for (int event = 0; event < events && !::testing::Test::HasFailure(); ++event) {
      switch (random_.Integer(0, 9)) {
        case 0:
        case 1:
          Leave(true);
          break;
        case 2:
        case 3:
          Leave(false);
          break;
        case 4:
          Fork();
          break;
        case 5:
        case 6:
          Step(true);
          break;
        default:
          Step(false);
      }
      for (std::int32_t b = 0; b < batch_; ++b) ASSERT_EQ(cache_->lengths()[b], Length(b));
    }
  }
  int refused() const { return refused_; }
  int left() const { return left_; }

 private:
  std::int32_t Length(std::int32_t b) const {
    return static_cast<std::int32_t>(model_.rows[static_cast<std::size_t>(b)].size());
  }

  void Leave(bool at_the_end) {
    std::vector<std::int32_t> begins;
    std::vector<std::int32_t> ends;
    std::vector<Row> rest = model_.rows;
    bool allowed = true;
    for (std::int32_t b = 0; b < batch_; ++b) {
      const std::int32_t length = Length(b);
      const std::int32_t few = std::min(length, random_.Integer(0, random_.Integer(0, 3) == 0 ? length : 4));
      const std::int32_t end = at_the_end ? length : random_.Integer(few, length);
      begins.push_back(end - few);
      ends.push_back(end);
      Row& row = rest[static_cast<std::size_t>(b)];
      if (few == 0) continue;
      if (end < length) {
        // A token may move up where all from `begin` on, and sink tokens if the ring begins anew at them, are there.
        for (std::int32_t j = std::min(end - few, length); j < length; ++j) {
          allowed = allowed && row[static_cast<std::size_t>(j)].held;
        }
      }
      row.erase(row.begin() + end - few, row.begin() + end);
      allowed = allowed && (plan_.window == 0 || Model::Whole(row, plan_.window, plan_.sinks));
    }
    const Status status = at_the_end ? cache_->Trim(begins.data()) : cache_->Drop(begins.data(), ends.data(), pool_);
    EXPECT_EQ(status.ok(), allowed);
    if (status.ok()) model_.rows = rest;
    (status.ok() ? left_ : refused_) += 1;
  }

  void Fork() {
    std::vector<std::int32_t> order;
    std::vector<Row> rows;
    for (std::int32_t b = random_.Integer(1, 3); b > 0; --b) {
      order.push_back(random_.Integer(0, batch_ - 1));
      rows.push_back(model_.rows[static_cast<std::size_t>(order.back())]);
    }
    auto copy = std::make_unique<KeyValueCache>();
    ASSERT_TRUE(copy->InitFrom(*cache_, order.data(), static_cast<std::int32_t>(order.size()), pool_).ok());
    cache_ = std::move(copy);
    batch_ = static_cast<std::int32_t>(order.size());
    model_.rows = rows;
  }

  void Step(bool reads) {
    const std::int32_t rows = random_.Integer(0, 3) == 0 ? random_.Integer(0, 20) : random_.Integer(1, 4);
    const std::vector<float> q = random_.Floats(std::int64_t{batch_} * rows * kHeads * kDim, -0.7F, 0.7F);
    const std::vector<float> k = random_.Floats(std::int64_t{batch_} * rows * kKvHeads * kDim, -0.7F, 0.7F);
    const std::vector<float> v = random_.Floats(std::int64_t{batch_} * rows * kKvHeads * kValueDim);
    const bool places = plan_.rope != Rope::kNone && random_.Integer(0, 3) == 0;
    const bool causal = plan_.window > 0 || random_.Integer(0, 2) > 0;
    std::vector<std::int32_t> counts;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> texts;
    std::int32_t longest = 0;
    bool full = false;
    for (std::int32_t b = 0; b < batch_; ++b) {
      counts.push_back(random_.Integer(0, 1) == 0 ? rows : random_.Integer(0, rows));
      const std::int32_t after = Length(b) + (reads ? 0 : counts.back());
      longest = std::max(longest, after);
      full = full || (plan_.window == 0 && after > plan_.capacity);
      texts.push_back(0);
      for (std::int32_t i = 0; i < rows; ++i) {
        std::int32_t position = model_.Next(b) + i - (reads ? counts.back() : 0);
        if (places) position = std::max(model_.Next(b) + random_.Integer(-3, 3), 0);
        positions.push_back(position);
        if (i < counts.back()) texts.back() = std::max(texts.back(), position + 1);
        if (plan_.rope == Rope::kTables && i < counts.back() && (position < 0 || position >= kTableRows)) return;
      }
    }
    std::vector<float> out(static_cast<std::size_t>(batch_ * rows * kHeads * kValueDim), -9.0F);
    KeyValueStepArgs args;
    args.cache = cache_.get();
    args.read_only = reads ? 1 : 0;
    args.positions = places ? positions.data() : nullptr;
    AttentionArgs& a = args.call;
    a.batch = batch_;
    a.heads = kHeads;
    a.kv_heads = kKvHeads;
    a.queries = rows;
    a.keys = longest;
    a.head_dim = kDim;
    a.value_dim = kValueDim;
    a.scale = static_cast<float>(kScale);
    a.causal = causal ? 1 : 0;
    a.q_strides = {rows * kHeads * kDim, kDim, kHeads * kDim};  // 'blhd'
    a.k_strides = {rows * kKvHeads * kDim, kDim, kKvHeads * kDim};
    a.v_strides = {rows * kKvHeads * kValueDim, kValueDim, kKvHeads * kValueDim};
    a.out_strides = {rows * kHeads * kValueDim, kValueDim, kHeads * kValueDim};
    a.q = q.data();
    a.k = reads ? nullptr : k.data();
    a.v = reads ? nullptr : v.data();
    a.out = out.data();
    a.q_lengths = counts.data();

    // Without queries now and then.
    if (!reads && random_.Integer(0, 4) == 0) a.q = nullptr;
    std::vector<double> expected;
    const bool seen = Expect(reads, causal, rows, q, k, v, counts, positions, texts, full, expected);
    KeyValueStep step;
    Job job;
    const Status status = step.Prepare(args, pool_, job);
    if (full || !seen) {
      EXPECT_EQ(status.argument == nullptr ? "" : std::string(status.argument), full ? "k" : "q");
      ++refused_;
      return;
    }
    ASSERT_TRUE(status.ok()) << status.argument;
    job.Run(pool_);
    if (a.q == nullptr) return;
    double worst = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) worst = std::max(worst, std::abs(out[i] - expected[i]));
    EXPECT_LE(worst, Tolerance());
  }

  // The outputs [B,L,H,Dv], the model having grown; false: refused for keys that are lost.
  bool Expect(bool reads, bool causal, std::int32_t rows, const std::vector<float>& q, const std::vector<float>& k,
              const std::vector<float>& v, const std::vector<std::int32_t>& counts,
              const std::vector<std::int32_t>& positions, const std::vector<std::int32_t>& texts, bool full,
              std::vector<double>& expected) {
    if (full) return true;
    bool seen = true;
    for (std::int32_t b = 0; b < batch_; ++b) {
      const std::int32_t start = Length(b) - (reads ? counts[static_cast<std::size_t>(b)] : 0);
      const std::int32_t text = texts[static_cast<std::size_t>(b)];
      const std::int32_t count = counts[static_cast<std::size_t>(b)];
      std::vector<std::vector<double>> of_row(static_cast<std::size_t>(rows), std::vector<double>(kHeads * kValueDim));
      // Tokens with a window are attended to as they come, as later ones of the same call may take their places.
      for (const bool appending : {true, false}) {
        for (std::int32_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>(b * rows + i);
          if (appending && !reads) {
            Token token{{}, {}, positions[at], true};
            for (std::size_t g = 0; g < kKvHeads; ++g) {
              for (const double x : model_.Turned(k.data() + (at * kKvHeads + g) * kDim, token.position, text)) {
                token.key.push_back(static_cast<float>(x));
              }
            }
            const float* const values = v.data() + at * kKvHeads * kValueDim;
            token.value.assign(values, values + kKvHeads * kValueDim);
            model_.Append(b, std::move(token));
          }
          if (appending != (plan_.window > 0)) continue;
          const bool whole = model_.Attend(b, q.data() + at * kHeads * kDim, start + i, Length(b), positions[at], text,
                                           causal, of_row[static_cast<std::size_t>(i)]);
          seen = seen && whole;
        }
      }
      for (const std::vector<double>& row : of_row) expected.insert(expected.end(), row.begin(), row.end());
    }
    return seen;
  }

  double Tolerance() const {
    switch (plan_.cells) {
      case CellType::kFloat16:
        return kHalfCacheTolerance;
      case CellType::kInt8:
        return kInt8CacheTolerance;
      case CellType::kFloat32:
        break;
    }
    return kAttentionTolerance;
  }

  Plan plan_;
  RandomValues random_;
  ThreadPool pool_{2};
  std::vector<float> cos_, sin_;
  Model model_;
  std::unique_ptr<KeyValueCache> cache_;
  std::int32_t batch_ = 0;
  int refused_ = 0;
  int left_ = 0;
};

Plan PlanOf(std::uint32_t seed) {
  RandomValues random(seed);
  Plan plan;
  plan.cells = static_cast<CellType>(seed % 3);
  plan.rope = static_cast<Rope>(random.Integer(0, 3));
  if (random.Integer(0, 2) == 0) {
    plan.capacity = random.Integer(1, 60);
    return plan;
  }
  plan.window = random.Integer(1, 12);
  plan.sinks = random.Integer(0, 3);
  plan.capacity = plan.window + plan.sinks + random.Integer(0, 2) * random.Integer(0, 15);
  plan.in_cache = plan.sinks > 0 && plan.rope != Rope::kNone && random.Integer(0, 2) > 0;
  return plan;
}

TEST(KeyValueCacheRandom, LivesAsItsModel) {
  int refused = 0;
  int left = 0;
  for (std::uint32_t seed = 1; seed <= 120; ++seed) {
    const Plan plan = PlanOf(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", window " + std::to_string(plan.window) + ", sinks " +
                 std::to_string(plan.sinks) + ", capacity " + std::to_string(plan.capacity) + ", rope " +
                 std::to_string(static_cast<int>(plan.rope)) + (plan.in_cache ? " in cache" : ""));
    Life life(plan, seed);
    life.Run(60);
    refused += life.refused();
    left += life.left();
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(left, 500);
}

}  // namespace
}  // namespace headwise::testing
