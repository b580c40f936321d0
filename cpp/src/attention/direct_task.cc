// Attention driver: the few query rows of one key/value head (all heads of its group) against keys and values where
// they lie, so that each is read from memory once. Scores are natural: with few rows to a key it is not the softmax that
// takes the time. Start reading at DirectTask.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/cells.h"
#include "attention/finish_row.h"
#include "attention/score_tile.h"
#include "attention/tasks.h"

namespace headwise {
namespace {

// Keys or values that are taken at a time: as many bytes, as floats, stay in the first-level cache until they have been
// used.
constexpr std::int32_t kBytesAtATime = 16 << 10;
constexpr std::int32_t kLeastAtATime = 8;

// A partial state of one row in call.partials: maximum, sum, accumulators.
std::int64_t PartialSize(const AttentionPlan& plan) { return std::int64_t{plan.padded_dim} + 2; }

// Row r of a key/value head: query r % L of head g * group + r / L.
class DirectRun {
 public:
  DirectRun(const AttentionCall& call, std::int64_t index, int thread)
      : call_(call),
        plan_(call.plan),
        scratch_(call.plan, call.args.head_dim, call.kernels->lanes, call.Scratch(thread)),
        batch_(static_cast<std::int32_t>(index / plan_.splits / call.args.kv_heads)),
        kv_head_(static_cast<std::int32_t>(index / plan_.splits % call.args.kv_heads)),
        split_(static_cast<std::int32_t>(index % plan_.splits)),
        head_row_(index / plan_.splits * plan_.block_rows),
        visibility_(call.args, batch_) {}

  void Run() {
    const AttentionArgs& args = call_.args;
    std::fill_n(scratch_.rows.max, plan_.block_rows, std::numeric_limits<float>::lowest());
    std::fill_n(scratch_.rows.sums, plan_.block_rows * call_.kernels->lanes, 0.0F);
    std::fill_n(scratch_.rows.acc, std::int64_t{plan_.block_rows} * plan_.padded_dim, 0.0F);
    const std::int32_t queries = call_.Queries(batch_);
    for (std::int32_t h = 0; h < call_.group(); ++h) {
      float* to = scratch_.queries + std::int64_t{h} * args.queries * args.head_dim;
      call_.kernels->scale_rows(call_.Query(batch_, Head(h), 0), args.q_strides.row, queries, args.head_dim,
                                call_.QueryScale(false), false, to, args.head_dim);
      std::fill_n(to + std::int64_t{queries} * args.head_dim, std::int64_t{args.queries - queries} * args.head_dim,
                  0.0F);
    }
    const std::int32_t begin = split_ * plan_.split_keys;
    end_ = std::min(begin + plan_.split_keys, call_.Keys(batch_));
    for (std::int32_t key = begin; key < end_; key += plan_.block_keys) {
      RunBlock(key, std::min(plan_.block_keys, end_ - key));
    }
    for (std::int32_t r = 0; r < plan_.block_rows; ++r) EndRow(r);
  }

 private:
  std::int32_t Head(std::int32_t in_group) const { return kv_head_ * call_.group() + in_group; }

  ScoreTile TileOfHead(std::int32_t in_group, std::int32_t key, std::int32_t keys) const {
    const std::int32_t lanes = call_.kernels->lanes;
    const std::int32_t width = (keys + lanes - 1) / lanes * lanes;
    return {batch_,
            Head(in_group),
            0,
            call_.args.queries,
            key,
            keys,
            width,
            scratch_.scores + std::int64_t{in_group} * call_.args.queries * plan_.block_keys,
            plan_.block_keys,
            false};
  }

  void RunBlock(std::int32_t key, std::int32_t keys) {
    const AttentionArgs& args = call_.args;
    bool open = true;
    bool hidden = true;
    for (std::int32_t h = 0; h < call_.group(); ++h) {
      const TileMasks masks = ClassifyTile(call_, visibility_, TileOfHead(h, key, keys));
      open &= masks == TileMasks::kOpen;
      hidden &= masks == TileMasks::kHidden;
    }
    if (!hidden || ScoresNeedProducts(call_)) Products(key, keys);
    if (hidden) {
      for (std::int32_t h = 0; h < call_.group(); ++h) FinishHiddenTile(call_, TileOfHead(h, key, keys));
      return;
    }
    for (std::int32_t h = 0; h < call_.group(); ++h) {
      FinishScores(call_, visibility_, TileOfHead(h, key, keys), open ? TileMasks::kOpen : TileMasks::kPartial);
    }
    // Only what can hide a key needs the slower values kernel, which leaves hidden ones out.
    const bool select = !open || args.bias != nullptr;
    Accumulate(key, keys, TileOfHead(0, key, keys).width, select);
  }

  void Products(std::int32_t key, std::int32_t keys) {
    const std::int32_t step = Step(call_.args.head_dim);
    for (std::int32_t at = 0; at < keys; at += step) {
      const std::int32_t count = std::min(step, keys - at);
      const std::int32_t next = at + count;
      PartOfProducts(KeyRows(call_, batch_, kv_head_, key + at, count, scratch_.wide), at, count,
                     next < keys ? KeysAhead(key + next, key + keys) : ValuesAhead(key, key + keys));
    }
    // The padding holds what an earlier block left; scores there must at least be numbers that hide() replaces.
    const std::int32_t width = TileOfHead(0, key, keys).width;
    if (width > keys) {
      for (std::int32_t r = 0; r < plan_.block_rows; ++r) {
        call_.kernels->hide(scratch_.scores + std::int64_t{r} * plan_.block_keys, keys, width);
      }
    }
  }

  static std::int32_t Step(std::int32_t size) {
    const std::int32_t row = std::max<std::int32_t>(size, 1) * static_cast<std::int32_t>(sizeof(float));
    return std::max(kBytesAtATime / row / kLeastAtATime * kLeastAtATime, kLeastAtATime);
  }

  // What a chunk's turn reads ahead: the chunk after it. Blocks go keys, values, keys of the next block.
  kernels::ReadAhead KeysAhead(std::int32_t key, std::int32_t end) const {
    return headwise::KeysAhead(call_, batch_, kv_head_, key, std::min(Step(call_.args.head_dim), end - key));
  }
  kernels::ReadAhead ValuesAhead(std::int32_t key, std::int32_t end) const {
    return headwise::ValuesAhead(call_, batch_, kv_head_, key, std::min(Step(call_.args.value_dim), end - key));
  }

  void PartOfProducts(FloatRows k, std::int32_t at, std::int32_t count, kernels::ReadAhead ahead) {
    const AttentionArgs& args = call_.args;
    if (call_.additive == nullptr) {
      call_.kernels->direct_scores(plan_.block_rows, scratch_.queries, args.head_dim, k.data, k.stride, count,
                                   args.head_dim, scratch_.scores + at, plan_.block_keys, ahead);
      return;
    }
    for (std::int32_t h = 0; h < call_.group(); ++h) {
      const std::int64_t row = std::int64_t{h} * args.queries;
      call_.kernels->direct_additive(args.queries, scratch_.queries + row * args.head_dim, args.head_dim, k.data,
                                     k.stride, count, args.head_dim,
                                     call_.additive + std::int64_t{Head(h)} * args.head_dim,
                                     scratch_.scores + row * plan_.block_keys + at, plan_.block_keys);
    }
  }

  void Accumulate(std::int32_t key, std::int32_t keys, std::int32_t width, bool select) {
    const kernels::KernelTable& kernels = *call_.kernels;
    const AttentionArgs& args = call_.args;
    const RowStates& rows = scratch_.rows;
    const std::int32_t ld = plan_.block_keys;
    if (select) {
      for (std::int32_t r = 0; r < plan_.block_rows; ++r) {
        kernels.visible(scratch_.scores + std::int64_t{r} * ld, keys, scratch_.visible + std::int64_t{r} * ld);
      }
    }
    kernels.softmax_natural(plan_.block_rows, width, scratch_.scores, ld, nullptr, 0.0F, call_.lift, rows.max,
                            rows.sums, rows.rescale);
    if (args.dropout_rate > 0.0F) {
      const kernels::Dropout dropout = call_.dropout();
      for (std::int32_t r = 0; r < plan_.block_rows; ++r) {
        dropout.Apply(scratch_.scores + std::int64_t{r} * ld, keys, batch_, Head(r / args.queries), r % args.queries,
                      key);
      }
    }
    const std::int32_t step = Step(args.value_dim);
    for (std::int32_t at = 0; at < keys; at += step) {
      const std::int32_t count = std::min(step, keys - at);
      const FloatRows v = ValueRows(call_, batch_, kv_head_, key + at, count, scratch_.wide);
      kernels.direct_values(
          plan_.block_rows, scratch_.scores + at, ld, select ? scratch_.visible + at : nullptr, v.data, v.stride, count,
          args.value_dim, rows.rescale, rows.acc, plan_.padded_dim,
          at + count < keys ? ValuesAhead(key + at + count, key + keys) : KeysAhead(key + keys, end_));
      std::fill_n(rows.rescale, plan_.block_rows, 1.0F);  // once a block
    }
  }

  void EndRow(std::int32_t r) {
    const float max = scratch_.rows.max[r];
    const float sum = SumLanes(scratch_.rows.sums + std::int64_t{r} * call_.kernels->lanes, call_.kernels->lanes);
    const float* acc = scratch_.rows.acc + std::int64_t{r} * plan_.padded_dim;
    if (plan_.splits == 1) {
      FinishRow(call_, batch_, Head(r / call_.args.queries), r % call_.args.queries, false, max, sum, acc);
      return;
    }
    float* partial = call_.partials + ((head_row_ + r) * plan_.splits + split_) * PartialSize(plan_);
    partial[0] = max;
    partial[1] = sum;
    std::memcpy(partial + 2, acc, sizeof(float) * static_cast<std::size_t>(plan_.padded_dim));
  }

  const AttentionCall& call_;
  const AttentionPlan& plan_;
  const AttentionScratch scratch_;
  const std::int32_t batch_;
  const std::int32_t kv_head_;
  const std::int32_t split_;
  const std::int64_t head_row_;
  std::int32_t end_ = 0;  // of the split's keys
  const Visibility visibility_;
};

}  // namespace

void DirectTask(void* call, std::int64_t index, int thread) {
  DirectRun(*static_cast<const AttentionCall*>(call), index, thread).Run();
}

std::uint64_t PartialFloats(const AttentionPlan& plan, std::int64_t kv_heads) {
  if (!plan.direct || plan.splits == 1) return 0;
  return CheckedMul(static_cast<std::uint64_t>(kv_heads * plan.block_rows) * static_cast<std::uint64_t>(plan.splits),
                    static_cast<std::uint64_t>(PartialSize(plan)));
}

// Joins the splits of one key/value head in ascending order: states under different maxima are brought under the
// largest.
void MergeTask(void* context, std::int64_t index, int thread) {
  const AttentionCall& call = *static_cast<const AttentionCall*>(context);
  const AttentionPlan& plan = call.plan;
  const AttentionScratch scratch(plan, call.args.head_dim, call.kernels->lanes, call.Scratch(thread));
  const auto b = static_cast<std::int32_t>(index / call.args.kv_heads);
  const auto g = static_cast<std::int32_t>(index % call.args.kv_heads);
  for (std::int32_t r = 0; r < plan.block_rows; ++r) {
    const float* first = call.partials + (index * plan.block_rows + r) * plan.splits * PartialSize(plan);
    float top = std::numeric_limits<float>::lowest();
    for (std::int32_t s = 0; s < plan.splits; ++s) top = std::max(top, first[s * PartialSize(plan)]);
    float* acc = scratch.rows.acc;
    std::fill_n(acc, plan.padded_dim, 0.0F);
    float sum = 0.0F;
    for (std::int32_t s = 0; s < plan.splits; ++s) {
      const float* partial = first + s * PartialSize(plan);
      if (partial[1] == 0.0F) continue;  // a split without a visible key
      const auto factor = static_cast<float>(std::exp(static_cast<double>(partial[0]) - top));
      sum += partial[1] * factor;
      for (std::int32_t c = 0; c < call.args.value_dim; ++c) acc[c] += partial[2 + c] * factor;
    }
    FinishRow(call, b, g * call.group() + r / call.args.queries, r % call.args.queries, false, top, sum, acc);
  }
}

}  // namespace headwise
