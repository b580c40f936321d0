// Attention driver: rows of one head in blocks against packed keys and values. Start reading at TiledTask.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/block_mask.h"
#include "attention/cells.h"
#include "attention/finish_row.h"
#include "attention/score_tile.h"
#include "attention/tasks.h"

namespace headwise {
namespace {

constexpr std::int32_t RoundUp(std::int32_t n, std::int32_t to) { return (n + to - 1) / to * to; }

constexpr std::int32_t kStripTiles = 2;  // rows of a strip, in the kernel's tiles

// In units of ln 2 the terms of a score are rounded once more than natural ones, and end at 2.4e38. Where the norms of a query
// and of a key that it sees allow terms larger than this, a block of rows goes on in natural units. What is hidden has no say.
constexpr float kLargestLog2 = 256.0F;

enum BlockState : std::uint8_t { kAbsent = 0, kFinite = 1, kPoisoned = 2 };

class TiledRun {
 public:
  TiledRun(const AttentionCall& call, const TaskRows& rows, int thread)
      : call_(call),
        plan_(call.plan),
        scratch_(call.plan, call.args.head_dim, call.kernels->lanes, call.Scratch(thread)),
        batch_(rows.batch),
        head_(rows.head),
        kv_head_(head_ / call.group()),
        visibility_(call.args, batch_),
        first_row_(rows.first),
        last_row_(rows.last) {}

  // Against all keys, where they are one chunk.
  void Run() {
    if (first_row_ >= last_row_) return;
    StartStates(call_.only_masks);
    Take(0);
    Finish();
  }

  // Against one chunk of several; in between the rows' states lie in `kept`.
  void RunChunk(std::int32_t chunk, std::byte* kept) {
    if (first_row_ >= last_row_) return;
    const auto bytes = static_cast<std::size_t>(scratch_.state_bytes);
    if (chunk == 0) {
      StartStates(call_.only_masks);
    } else {
      std::memcpy(scratch_.rows.max, kept, bytes);
    }
    Take(chunk);
    if (chunk + 1 < plan_.chunks) {
      std::memcpy(kept, scratch_.rows.max, bytes);
    } else {
      Finish();
    }
  }

  void RunSums(float* max, float* sums) {
    StartStates(false);
    for (std::int32_t chunk = 0; chunk < plan_.chunks; ++chunk) Take(chunk);
    for (std::int32_t row = first_row_; row < last_row_; ++row) {
      const RowStates state = StatesOf(row);
      max[row - first_row_] = *state.max;
      sums[row - first_row_] = SumLanes(state.sums, call_.kernels->lanes);
    }
  }

 private:
  void Finish() const {
    for (std::int32_t row = first_row_; row < last_row_; ++row) {
      const RowStates state = StatesOf(row);
      FinishRow(call_, batch_, head_, row, !IsNatural(row), *state.max, SumLanes(state.sums, call_.kernels->lanes),
                state.acc);
    }
  }

  void Take(std::int32_t chunk) {
    const std::int64_t first = std::int64_t{chunk} * plan_.chunk_keys;
    const std::int64_t last = std::min<std::int64_t>(first + plan_.chunk_keys, call_.Keys(batch_));
    if (first >= last) return;
    OpenChunk(chunk);
    RunRows(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last));
  }

  RowStates StatesOf(std::int32_t row) const {
    const std::int64_t at = row - first_row_;
    return {scratch_.rows.max + at, scratch_.rows.sums + at * call_.kernels->lanes, scratch_.rows.rescale + at,
            scratch_.rows.acc + at * plan_.padded_dim};
  }

  void StartStates(bool log2) {
    const std::int64_t rows = last_row_ - first_row_;
    std::fill_n(scratch_.rows.max, rows, std::numeric_limits<float>::lowest());
    std::fill_n(scratch_.rows.sums, rows * call_.kernels->lanes, 0.0F);
    std::fill_n(scratch_.rows.acc, rows * plan_.padded_dim, 0.0F);
    std::fill_n(scratch_.natural, rows, log2 ? 0 : 1);
  }

  bool IsNatural(std::int32_t row) const { return scratch_.natural[row - first_row_] != 0; }

  // Goes over to natural units; the keys before `key` have been taken in.
  void GoNatural(std::int32_t key) {
    log2_ = false;
    for (std::int32_t i = first_row_; i < last_row_; ++i) {
      scratch_.natural[i - first_row_] = 1;
      if (float* weights = call_.Weights(batch_, head_, i)) {
        call_.kernels->scale(weights, key, static_cast<float>(kLn2), weights);
      }
      const RowStates state = StatesOf(i);
      if (*state.max == std::numeric_limits<float>::lowest()) continue;
      const double natural = static_cast<double>(*state.max) * kLn2;
      *state.max = static_cast<float>(natural);
      const auto factor = static_cast<float>(std::exp(natural - static_cast<double>(*state.max)));
      call_.kernels->scale(state.sums, call_.kernels->lanes, factor, state.sums);
      call_.kernels->scale(state.acc, plan_.padded_dim, factor, state.acc);
    }
  }

  // Forgets packed blocks unless they are of this very head and chunk.
  void OpenChunk(std::int32_t chunk) {
    const std::int64_t id = (std::int64_t{batch_} * call_.args.kv_heads + kv_head_) * plan_.chunks + chunk + 1;
    if (scratch_.header->head_chunk == id) return;
    scratch_.header->head_chunk = id;
    std::fill_n(scratch_.block_state, plan_.chunk_keys / plan_.block_keys, kAbsent);
  }

  float* PackedKeys(std::int32_t block) const {
    return scratch_.keys + std::int64_t{block} * plan_.block_keys * call_.args.head_dim;
  }
  float* PackedValues(std::int32_t block) const {
    return scratch_.values + std::int64_t{block} * plan_.block_keys * plan_.padded_dim;
  }
  // Packed values of a block: panels of block_keys rows.
  std::int64_t ValuePanel() const { return std::int64_t{plan_.block_keys} * call_.kernels->panel; }

  BlockState Pack(std::int32_t block, std::int32_t key, std::int32_t keys) {
    std::uint8_t& state = scratch_.block_state[block];
    if (state == kAbsent) {
      const AttentionArgs& args = call_.args;
      const FloatRows k = KeyRows(call_, batch_, kv_head_, key, keys, scratch_.wide);
      call_.kernels->pack_transposed(k.data, k.stride, keys, args.head_dim, PackedKeys(block));
      const float key_norm =
          call_.only_masks ? call_.kernels->norms(k.data, k.stride, keys, args.head_dim, nullptr) : 0.0F;
      const FloatRows v = ValueRows(call_, batch_, kv_head_, key, keys, scratch_.wide);
      const float squares =
          call_.kernels->pack_columns(v.data, v.stride, keys, args.value_dim, PackedValues(block), ValuePanel());
      const bool poisoned = !std::isfinite(squares);
      if (poisoned) {
        call_.kernels->sanitize(PackedValues(block), std::int64_t{plan_.block_keys} * plan_.padded_dim);
      }
      // With values up to 2^32 no weight under the softmax's bound can make a sum overflow.
      scratch_.key_norms[block] = squares < 0x1p64F ? key_norm : std::numeric_limits<float>::infinity();
      state = poisoned ? kPoisoned : kFinite;
    }
    return static_cast<BlockState>(state);
  }

  // The rows against the keys of a chunk.
  void RunRows(std::int32_t chunk, std::int32_t chunk_end) {
    const std::int32_t row = first_row_;
    const std::int32_t rows = last_row_ - row;
    bool queries_ready = false;
    log2_ = !IsNatural(row);
    for (std::int32_t key = chunk; key < chunk_end; key += plan_.block_keys) {
      const std::int32_t keys = std::min(plan_.block_keys, chunk_end - key);
      ScoreTile tile = VisiblePart(row, rows, key, keys);
      const TileMasks masks = ClassifyTile(call_, visibility_, tile);
      if (masks == TileMasks::kHidden && !ScoresNeedProducts(call_)) {
        FinishHiddenTile(call_, tile);
        continue;
      }
      if (!queries_ready) {
        ScaleQueries();
        queries_ready = true;
      }
      const std::int32_t block = (key - chunk) / plan_.block_keys;
      const BlockState state = Pack(block, key, keys);
      // Before the block is cut into strips, so that all its rows change at one place.
      if (log2_ && masks != TileMasks::kHidden && !(largest_query_ * scratch_.key_norms[block] <= kLargestLog2) &&
          AnyBeyond(tile, masks)) {
        GoNatural(key);
        ScaleQueries();
        tile.log2 = false;
      }
      const std::int32_t strip = StripRows(tile);
      if (strip == rows) {
        RunTile(tile, block, state, masks);
        continue;
      }
      for (std::int32_t first = row; first < last_row_; first += strip) {
        const ScoreTile part = VisiblePart(first, std::min(strip, last_row_ - first), key, keys);
        RunTile(part, block, state, ClassifyTile(call_, visibility_, part));
      }
    }
  }

  void ScaleQueries() {
    const std::int32_t rows = last_row_ - first_row_;
    const std::int32_t dim = call_.args.head_dim;
    call_.kernels->scale_rows(call_.Query(batch_, head_, first_row_), call_.args.q_strides.row, rows, dim,
                              call_.QueryScale(log2_), false, scratch_.queries, dim);
    if (log2_) largest_query_ = call_.kernels->norms(scratch_.queries, dim, rows, dim, scratch_.query_norms);
  }

  // Where an edge of what rows may see runs through a tile (causality, a window), few rows at a time leave little to compute
  // that is then hidden.
  std::int32_t StripRows(const ScoreTile& tile) const {
    if (!ClipsTiles()) return tile.rows;
    const KeyRange all = visibility_.Intersection(tile.row, tile.row + tile.rows);
    const bool edge = all.begin > tile.key || all.end < tile.key + tile.keys;
    return edge ? std::min(kStripTiles * call_.kernels->row_tile, tile.rows) : tile.rows;
  }

  void RunTile(const ScoreTile& tile, std::int32_t block, BlockState state, TileMasks masks) {
    const bool hidden = masks == TileMasks::kHidden;
    const std::int32_t skipped = tile.key % plan_.block_keys;
    if (!hidden || ScoresNeedProducts(call_)) {
      Products(tile, scratch_.queries + std::int64_t{tile.row - first_row_} * call_.args.head_dim,
               PackedKeys(block) + std::int64_t{skipped} * call_.args.head_dim);
    }
    if (hidden) {
      FinishHiddenTile(call_, tile);
      return;
    }
    FinishScores(call_, visibility_, tile, masks);
    // Their norms bound scores that are products alone, none of them hidden.
    const bool bounded = log2_ && masks == TileMasks::kOpen && tile.width == tile.keys;
    Accumulate(tile, PackedValues(block) + std::int64_t{skipped} * call_.kernels->panel, state,
               bounded ? scratch_.query_norms + (tile.row - first_row_) : nullptr, scratch_.key_norms[block]);
  }

  // Whether a row of a block's tile sees a key beyond the limit, by their norms.
  bool AnyBeyond(const ScoreTile& tile, TileMasks masks) const {
    const FloatRows k = KeyRows(call_, batch_, kv_head_, tile.key, tile.keys, scratch_.wide);
    call_.kernels->norms(k.data, k.stride, tile.keys, call_.args.head_dim, scratch_.norms);
    std::fill_n(scratch_.hidden, tile.keys, 0.0F);
    for (std::int32_t r = 0; r < tile.rows; ++r) {
      if (masks == TileMasks::kPartial) {
        std::fill_n(scratch_.hidden, tile.keys, 0.0F);
        HideScores(call_, visibility_, tile, tile.row + r, scratch_.hidden);
      }
      bool beyond = false;
      for (std::int32_t j = 0; j < tile.keys; ++j) {
        beyond |= scratch_.hidden[j] == 0.0F && scratch_.query_norms[r] * scratch_.norms[j] > kLargestLog2;
      }
      if (beyond) return true;
    }
    return false;
  }

  // Whether keys that no row may see are left out: not where hidden scores or weights are asked for, nor in a ring, whose keys
  // are in no order.
  bool ClipsTiles() const {
    return call_.args.score_stage == ScoreStage::kNone && call_.args.weights == nullptr && !visibility_.ring();
  }

  // The block's panels that some row may see by its interval of keys: what causality, a window or a length hides at the
  // ends is not computed. The whole block where hidden scores are asked for, and where all is hidden.
  ScoreTile VisiblePart(std::int32_t row, std::int32_t rows, std::int32_t key, std::int32_t keys) const {
    const std::int32_t panel = call_.kernels->panel;
    std::int32_t begin = 0;
    std::int32_t end = keys;
    if (ClipsTiles()) {
      KeyRange seen = visibility_.Union(row, row + rows);
      if (const BlockMask blocks(call_.args); blocks.given()) {
        const BlockMask::Summary listed = blocks.Summarize(row, rows, key, key + keys);
        seen = {std::max(seen.begin, listed.begin), std::min(seen.end, listed.end)};
      }
      const std::int32_t first = std::clamp(seen.begin - key, 0, keys) / panel * panel;
      const std::int32_t last = std::min(keys, RoundUp(std::clamp(seen.end - key, 0, keys), panel));
      if (first < last) {
        begin = first;
        end = last;
      }
    }
    return {batch_,           head_, row, rows, key + begin, end - begin, RoundUp(end - begin, panel), scratch_.scores,
            plan_.block_keys, log2_};
  }

  void Products(const ScoreTile& tile, const float* queries, const float* keys) {
    const std::int32_t dim = call_.args.head_dim;
    for (std::int32_t column = 0; column < tile.width; column += call_.kernels->panel) {
      const float* panel = keys + std::int64_t{column} * dim;
      float* scores = tile.scores + column;
      if (call_.additive == nullptr) {
        call_.kernels->gemm_store(tile.rows, queries, dim, panel, dim, scores, tile.ld);
      } else {
        call_.kernels->additive_scores(tile.rows, queries, dim, panel, dim, call_.additive + std::int64_t{head_} * dim,
                                       scores, tile.ld);
      }
    }
  }

  void Accumulate(const ScoreTile& tile, const float* values, BlockState state, const float* norms, float key_norm) {
    const kernels::KernelTable& kernels = *call_.kernels;
    const RowStates rows = StatesOf(tile.row);
    if (state == kPoisoned) {
      for (std::int32_t r = 0; r < tile.rows; ++r) {
        kernels.visible(tile.scores + r * tile.ld, tile.keys, scratch_.visible + r * tile.ld);
      }
    }
    const bool rescaled = (log2_ ? kernels.softmax_log2 : kernels.softmax_natural)(
        tile.rows, tile.width, tile.scores, tile.ld, norms, key_norm, call_.lift, rows.max, rows.sums, rows.rescale);
    if (call_.args.dropout_rate > 0.0F) {
      const kernels::Dropout dropout = call_.dropout();
      for (std::int32_t r = 0; r < tile.rows; ++r) {
        dropout.Apply(tile.scores + r * tile.ld, tile.keys, batch_, head_, tile.row + r, tile.key);
      }
    }
    if (rescaled) {
      for (std::int32_t r = 0; r < tile.rows; ++r) {
        float* const acc = rows.acc + std::int64_t{r} * plan_.padded_dim;
        if (rows.rescale[r] != 1.0F) kernels.scale(acc, plan_.padded_dim, rows.rescale[r], acc);
      }
    }
    for (std::int32_t column = 0; column < plan_.padded_dim; column += kernels.panel, values += ValuePanel()) {
      kernels.gemm_add(tile.rows, tile.scores, tile.ld, values, tile.keys, rows.acc + column, plan_.padded_dim);
    }
    if (state == kPoisoned) AddPoison(tile, rows);
  }

  // The packed copy holds 0 for NaN and infinities; here they reach the rows that may see them, and no others.
  void AddPoison(const ScoreTile& tile, const RowStates& rows) {
    const FloatRows v = ValueRows(call_, batch_, kv_head_, tile.key, tile.keys, scratch_.wide);
    for (std::int32_t j = 0; j < tile.keys; ++j) {
      const float* value = v.data + j * v.stride;
      for (std::int32_t c = 0; c < call_.args.value_dim; ++c) {
        if (std::isfinite(value[c])) continue;
        for (std::int32_t r = 0; r < tile.rows; ++r) {
          if (scratch_.visible[r * tile.ld + j] == 0) continue;
          rows.acc[std::int64_t{r} * plan_.padded_dim + c] += tile.scores[r * tile.ld + j] * value[c];
        }
      }
    }
  }

  const AttentionCall& call_;
  const AttentionPlan& plan_;
  const AttentionScratch scratch_;
  const std::int32_t batch_;
  const std::int32_t head_;
  const std::int32_t kv_head_;
  const Visibility visibility_;
  const std::int32_t first_row_;
  const std::int32_t last_row_;
  bool log2_ = false;           // scores are in units of ln 2
  float largest_query_ = 0.0F;  // the largest norm of the block's queries, scaled
};

}  // namespace

TaskRows RowsOfTask(const AttentionCall& call, std::int64_t index) {
  const AttentionPlan& plan = call.plan;
  const auto batch = static_cast<std::int32_t>(index / plan.row_tasks / call.args.heads);
  const auto head = static_cast<std::int32_t>(index / plan.row_tasks % call.args.heads);
  const std::int64_t first = (plan.row_tasks - 1 - index % plan.row_tasks) * plan.block_rows;
  const std::int64_t last = std::min<std::int64_t>(first + plan.block_rows, call.Queries(batch));
  return {batch, head, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)};
}

void TiledTask(void* context, std::int64_t index, int thread) {
  const AttentionCall& call = *static_cast<const AttentionCall*>(context);
  TiledRun(call, RowsOfTask(call, index), thread).Run();
}

void ChunkTask(void* context, std::int64_t index, int thread) {
  const ChunkPhase& phase = *static_cast<const ChunkPhase*>(context);
  const AttentionCall& call = *phase.call;
  std::byte* const kept = call.states + index * static_cast<std::int64_t>(StateBytes(call.plan, call.kernels->lanes));
  TiledRun(call, RowsOfTask(call, phase.first_task + index), thread).RunChunk(phase.chunk, kept);
}

std::uint64_t StateBytes(const AttentionPlan& plan, int lanes) {
  return AttentionScratch(plan, 0, lanes, nullptr).state_bytes;
}

void TiledSums(const AttentionCall& call, std::int64_t index, int thread, float* max, float* sums) {
  TiledRun(call, RowsOfTask(call, index), thread).RunSums(max, sums);
}

}  // namespace headwise
