// Attention driver: backward, one query chunk against one key chunk of a key/value head. Start reading at BackwardTileTask.
#include <algorithm>
#include <cmath>

#include "attention/backward_call.h"
#include "attention/score_tile.h"

namespace headwise {
namespace {

constexpr std::int32_t RoundUp(std::int32_t n, std::int32_t to) { return (n + to - 1) / to * to; }

class BackwardRun {
 public:
  BackwardRun(const AttentionBackwardPhase& phase, std::int64_t index, int thread)
      : call_(*phase.call),
        a_(call_.attention()),
        plan_(call_.plan),
        kernels_(*call_.forward.kernels),
        panel_(kernels_.panel),
        scratch_(plan_, a_.head_dim, a_.value_dim, panel_, call_.forward.Scratch(thread)),
        chunks_(plan_.ChunksOf(phase.rotation, static_cast<int>(index % plan_.tasks()))),
        kv_head_(phase.first_kv_head + static_cast<std::int32_t>(index / plan_.tasks() % phase.kv_heads)),
        batch_(phase.first_batch + static_cast<std::int32_t>(index / plan_.tasks() / phase.kv_heads)),
        visibility_(a_, batch_) {
    const std::int64_t row = std::int64_t{chunks_.rows} * plan_.chunk_rows;
    const std::int32_t queries = call_.forward.Queries(batch_);
    first_row_ = static_cast<std::int32_t>(std::min<std::int64_t>(row, queries));
    last_row_ = static_cast<std::int32_t>(std::min<std::int64_t>(row + plan_.chunk_rows, queries));
    const std::int64_t key = std::int64_t{chunks_.keys} * plan_.chunk_keys;
    const std::int32_t keys = call_.forward.Keys(batch_);
    first_key_ = static_cast<std::int32_t>(std::min<std::int64_t>(key, keys));
    last_key_ = static_cast<std::int32_t>(std::min<std::int64_t>(key + plan_.chunk_keys, keys));
  }

  void Run() {
    bool first = chunks_.first_of_rows;
    // Also without keys: then queries get their zeros.
    std::int32_t part = first_key_;
    do {
      RunPart(part, std::min(part + plan_.part_keys, last_key_), first);
      first = false;
      part += plan_.part_keys;
    } while (part < last_key_);
  }

 private:
  // What a part's keys and a block's rows have to do with each other, and where its outputs are.
  struct Tile {
    ScoreTile place;  // its visible part; `scores` is the first panel
    TileMasks masks;
    std::int32_t part_key;  // counted from the part's begin
    std::int32_t block;
    std::int32_t skipped;  // keys of the block before the visible part
  };

  void RunPart(std::int32_t key, std::int32_t key_end, bool first) {
    part_key_ = key;
    part_end_ = key_end;
    packed_ = false;
    for (std::int32_t h = kv_head_ * call_.forward.group(); h < (kv_head_ + 1) * call_.forward.group(); ++h) {
      for (std::int32_t row = first_row_; row < last_row_; row += plan_.block_rows) {
        RunRows(h, row, std::min(row + plan_.block_rows, last_row_) - row, first);
      }
    }
    const std::int32_t keys = key_end - key;
    const bool add = !chunks_.first_of_keys;
    float* dk = call_.args.dk + call_.forward.KeyOffset(batch_, kv_head_, key);
    float* dv = call_.args.dv + call_.forward.ValueOffset(batch_, kv_head_, key);
    if (packed_) {
      kernels_.from_panels(scratch_.dk_transposed, keys, a_.head_dim, a_.scale, add, dk, a_.k_strides.row);
      kernels_.from_panels(scratch_.dv_transposed, keys, a_.value_dim, 1.0F, add, dv, a_.v_strides.row);
    } else if (!add) {
      ClearRows(dk, a_.k_strides.row, keys, a_.head_dim);
      ClearRows(dv, a_.v_strides.row, keys, a_.value_dim);
    }
  }

  // Packs the part at the first tile that needs it.
  void Pack() {
    if (packed_) return;
    packed_ = true;
    const std::int32_t keys = part_end_ - part_key_;
    const float* k = a_.k + call_.forward.KeyOffset(batch_, kv_head_, part_key_);
    const float* v = a_.v + call_.forward.ValueOffset(batch_, kv_head_, part_key_);
    kernels_.pack_transposed(k, a_.k_strides.row, keys, a_.head_dim, scratch_.keys_transposed);
    kernels_.pack_transposed(v, a_.v_strides.row, keys, a_.value_dim, scratch_.values_transposed);
    for (std::int32_t key = 0; key < keys; key += plan_.block_keys) {
      float* block = scratch_.keys + std::int64_t{key} * plan_.padded_dim;
      const float squares =
          kernels_.pack_columns(k + std::int64_t{key} * a_.k_strides.row, a_.k_strides.row,
                                std::min(plan_.block_keys, keys - key), a_.head_dim, block, KeyPanel());
      if (!std::isfinite(squares)) kernels_.sanitize(block, std::int64_t{plan_.block_keys} * plan_.padded_dim);
    }
    const std::int64_t padded = RoundUp(keys, panel_);
    std::fill_n(scratch_.dk_transposed, padded * a_.head_dim, 0.0F);
    std::fill_n(scratch_.dv_transposed, padded * a_.value_dim, 0.0F);
  }
  std::int64_t KeyPanel() const { return std::int64_t{plan_.block_keys} * panel_; }

  void RunRows(std::int32_t h, std::int32_t row, std::int32_t rows, bool first) {
    bool ready = false;
    exact_ = call_.Exact(call_.Row(batch_, h, row));
    for (std::int32_t key = part_key_; key < part_end_; key += plan_.block_keys) {
      const Tile tile = VisiblePart(h, row, rows, key);
      if (tile.masks == TileMasks::kHidden) continue;
      if (!ready) {
        ready = true;
        Pack();
        PrepareRows(h, row, rows);
      }
      RunTile(tile);
    }
    float* dq = call_.args.dq + call_.forward.QueryOffset(batch_, h, row);
    if (ready) {
      kernels_.scale_rows(scratch_.dq, plan_.padded_dim, rows, a_.head_dim, a_.scale, !first, dq, a_.q_strides.row);
    } else if (first) {
      ClearRows(dq, a_.q_strides.row, rows, a_.head_dim);
    }
  }

  static void ClearRows(float* to, std::int64_t stride, std::int32_t rows, std::int32_t size) {
    for (std::int32_t r = 0; r < rows; ++r) std::fill_n(to + r * stride, size, 0.0F);
  }

  void PrepareRows(std::int32_t h, std::int32_t row, std::int32_t rows) {
    const float* q = call_.forward.Query(batch_, h, row);
    d_out_ = call_.args.d_out + call_.forward.OutputOffset(batch_, h, row);
    kernels_.scale_rows(q, a_.q_strides.row, rows, a_.head_dim, call_.forward.QueryScale(false), false,
                        scratch_.queries, a_.head_dim);
    TransposeFinite(q, a_.q_strides.row, rows, a_.head_dim, scratch_.queries_transposed);
    poisoned_ = TransposeFinite(d_out_, a_.out_strides.row, rows, a_.value_dim, scratch_.d_out_transposed);
    std::fill_n(scratch_.dq, std::int64_t{rows} * plan_.padded_dim, 0.0F);
  }

  // Returns whether NaN or infinities were among the rows; those become 0.
  bool TransposeFinite(const float* from, std::int32_t stride, std::int32_t rows, std::int32_t size, float* to) const {
    if (!kernels_.transpose(from, stride, rows, size, to, plan_.block_rows)) return false;
    for (std::int32_t d = 0; d < size; ++d) kernels_.sanitize(to + std::int64_t{d} * plan_.block_rows, rows);
    return true;
  }

  // The block's panels that some row may see by its interval of keys.
  Tile VisiblePart(std::int32_t h, std::int32_t row, std::int32_t rows, std::int32_t key) const {
    const std::int32_t keys = std::min(plan_.block_keys, part_end_ - key);
    const KeyRange seen = visibility_.Union(row, row + rows);
    const std::int32_t first = std::clamp(seen.begin - key, 0, keys) / panel_ * panel_;
    const std::int32_t last = std::min(keys, RoundUp(std::clamp(seen.end - key, 0, keys), panel_));
    Tile tile{};
    tile.place = {batch_,          h,      row,  rows, key + first, last - first, RoundUp(last - first, panel_),
                  scratch_.scores, panel_, false};
    tile.masks = first < last ? ClassifyTile(call_.forward, visibility_, tile.place) : TileMasks::kHidden;
    tile.part_key = key + first - part_key_;
    tile.block = key - part_key_;
    tile.skipped = first;
    return tile;
  }

  // One panel of keys of a tile, with the rows that may see some of them.
  struct Panel {
    ScoreTile place;
    std::int32_t first;  // rows of the block before them
    std::int32_t part_key;
    float* dp;  // dO V^T, then gradients
    float* ds;  // the gradients once more, in rows of the tile
  };

  struct Panels {
    Panel panel[kMostBackwardPanels];
    std::int32_t count = 0;
    const Panel* begin() const { return panel; }
    const Panel* end() const { return panel + count; }
  };

  Panels PanelsOf(const Tile& tile) const {
    const ScoreTile& all = tile.place;
    Panels panels;
    for (std::int32_t column = 0; column < all.keys; column += panel_) {
      Panel& panel = panels.panel[panels.count++];
      panel = {all, 0, tile.part_key + column, nullptr, scratch_.d_scores_rows + column};
      ScoreTile& place = panel.place;
      place.key += column;
      place.keys = std::min(panel_, all.keys - column);
      place.width = panel_;
      if (tile.masks != TileMasks::kOpen) {
        const KeyRange seen = visibility_.RowsThatSee(place.key, place.key + place.keys);
        // From a whole tile of rows on.
        panel.first = std::clamp(seen.begin - all.row, 0, all.rows) / kernels_.row_tile * kernels_.row_tile;
        place.rows = std::max(std::min(seen.end - all.row, all.rows) - panel.first, 0);
        place.row += panel.first;
      }
      const std::int64_t at = std::int64_t{column} * all.rows + std::int64_t{panel.first} * panel_;
      place.scores = scratch_.scores + at;
      panel.dp = scratch_.d_scores + at;
    }
    return panels;
  }

  // Product by product over all panels of the tile, so that each left side stays in the first-level cache.
  void RunTile(const Tile& tile) {
    const std::int64_t d = a_.head_dim;
    const std::int64_t dv = a_.value_dim;
    const Panels panels = PanelsOf(tile);
    for (const Panel& p : panels) {
      kernels_.gemm_store(p.place.rows, scratch_.queries + p.first * d, a_.head_dim,
                          scratch_.keys_transposed + p.part_key * d, a_.head_dim, p.place.scores, panel_);
    }
    for (const Panel& p : panels) {
      kernels_.gemm_store(p.place.rows, DOut(p, 0), a_.out_strides.row, scratch_.values_transposed + p.part_key * dv,
                          a_.value_dim, p.dp, panel_);
    }
    for (const Panel& p : panels) {
      Weigh(p, tile.masks);
      const std::int32_t last = p.first + p.place.rows;
      ClearRows(p.ds, plan_.block_keys, p.first, panel_);
      ClearRows(p.ds + std::int64_t{last} * plan_.block_keys, plan_.block_keys, tile.place.rows - last, panel_);
      if (poisoned_) AddPoison(p);
    }
    for (const Panel& p : panels) {
      kernels_.gemm_add(a_.value_dim, scratch_.d_out_transposed + p.first, plan_.block_rows, p.place.scores,
                        p.place.rows, scratch_.dv_transposed + p.part_key * dv, panel_);
    }
    for (const Panel& p : panels) {
      kernels_.gemm_add(a_.head_dim, scratch_.queries_transposed + p.first, plan_.block_rows, p.dp, p.place.rows,
                        scratch_.dk_transposed + p.part_key * d, panel_);
    }
    const float* keys =
        scratch_.keys + std::int64_t{tile.block} * plan_.padded_dim + std::int64_t{tile.skipped} * panel_;
    for (std::int32_t column = 0; column < plan_.padded_dim; column += panel_, keys += KeyPanel()) {
      kernels_.gemm_add(tile.place.rows, scratch_.d_scores_rows, plan_.block_keys, keys, tile.place.keys,
                        scratch_.dq + column, plan_.padded_dim);
    }
  }

  const float* DOut(const Panel& panel, std::int32_t r) const {
    return d_out_ + std::int64_t{panel.first + r} * a_.out_strides.row;
  }

  // From the scores and dO V^T of a panel, weights and gradients.
  void Weigh(const Panel& panel, TileMasks masks) {
    const ScoreTile& tile = panel.place;
    const std::int32_t count = tile.rows * panel_;
    if (a_.softcap > 0.0F) {
      std::copy_n(tile.scores, count, scratch_.capped);
      kernels_.softcap(scratch_.capped, count, a_.softcap);
    }
    FinishScores(call_.forward, visibility_, tile, masks);
    if (poisoned_) kernels_.visible(tile.scores, count, scratch_.visible);
    const float* dropout = nullptr;
    if (a_.dropout_rate > 0.0F) dropout = DropoutFactors(tile);
    const std::int64_t row = call_.Row(tile.batch, tile.head, tile.row);
    float* ds = panel.ds + std::int64_t{panel.first} * plan_.block_keys;
    if (exact_) {
      kernels_.softmax_backward_exact(tile.rows, tile.scores, panel.dp, call_.shift + row, call_.factor + row,
                                      call_.delta + row, dropout, ds, plan_.block_keys);
    } else {
      kernels_.softmax_backward(tile.rows, tile.scores, panel.dp, call_.shift + row, call_.delta + row, dropout, ds,
                                plan_.block_keys);
    }
    if (call_.bias_mode != BiasSums::kNone) AddBias(tile, panel.dp);
    if (a_.softcap > 0.0F) {
      kernels_.cap_slope(tile.rows, scratch_.capped, a_.softcap, panel.dp, ds, plan_.block_keys);
    }
  }

  const float* DropoutFactors(const ScoreTile& tile) {
    const kernels::Dropout dropout = call_.forward.dropout();
    std::fill_n(scratch_.dropout, tile.rows * panel_, 1.0F);
    for (std::int32_t r = 0; r < tile.rows; ++r) {
      dropout.Apply(scratch_.dropout + std::int64_t{r} * panel_, tile.keys, tile.batch, tile.head, tile.row + r,
                    tile.key);
    }
    return scratch_.dropout;
  }

  void AddBias(const ScoreTile& tile, const float* ds) {
    const BroadcastStrides& s = a_.bias_strides;
    for (std::int32_t r = 0; r < tile.rows; ++r, ds += panel_) {
      const std::int32_t i = tile.row + r;
      const std::int64_t head = std::int64_t{tile.batch} * a_.heads + tile.head;
      if (call_.bias_mode == BiasSums::kOfRows) {
        float sum = 0.0F;
        for (std::int32_t j = 0; j < tile.keys; ++j) sum += ds[j];
        call_.bias_sums[head * a_.queries + i] += sum;
        continue;
      }
      float* to = call_.bias_mode == BiasSums::kOfColumns
                      ? call_.bias_sums + head * a_.keys
                      : call_.args.d_bias + std::int64_t{tile.batch} * s.batch + std::int64_t{tile.head} * s.head +
                            std::int64_t{i} * s.row;
      for (std::int32_t j = 0; j < tile.keys; ++j) to[tile.key + j] += ds[j];
    }
  }

  // The transposed copy of dO holds 0 for NaN and infinities; here they reach the keys that their rows see, and no others.
  void AddPoison(const Panel& panel) {
    const ScoreTile& tile = panel.place;
    float* dv_panel = scratch_.dv_transposed + std::int64_t{panel.part_key} * a_.value_dim;
    for (std::int32_t r = 0; r < tile.rows; ++r) {
      const float* d_out = DOut(panel, r);
      for (std::int32_t c = 0; c < a_.value_dim; ++c) {
        if (std::isfinite(d_out[c])) continue;
        for (std::int32_t j = 0; j < tile.keys; ++j) {
          const std::int64_t at = std::int64_t{r} * panel_ + j;
          if (scratch_.visible[at] != 0) dv_panel[std::int64_t{c} * panel_ + j] += tile.scores[at] * d_out[c];
        }
      }
    }
  }

  const AttentionBackwardCall& call_;
  const AttentionArgs& a_;
  const AttentionBackwardPlan& plan_;
  const kernels::KernelTable& kernels_;
  const std::int32_t panel_;
  const AttentionBackwardScratch scratch_;
  const AttentionBackwardPlan::Chunks chunks_;
  const std::int32_t kv_head_;
  const std::int32_t batch_;
  const Visibility visibility_;
  std::int32_t first_row_, last_row_;
  std::int32_t first_key_, last_key_;
  std::int32_t part_key_ = 0;
  std::int32_t part_end_ = 0;
  bool packed_ = false;
  const float* d_out_ = nullptr;  // of the block's first row
  bool poisoned_ = false;         // the block's dO
  bool exact_ = false;            // the block's rows have their maxima and factors
};

}  // namespace

void BackwardTileTask(void* phase, std::int64_t index, int thread) {
  BackwardRun(*static_cast<const AttentionBackwardPhase*>(phase), index, thread).Run();
}

}  // namespace headwise
