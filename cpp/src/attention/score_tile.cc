// Attention driver: see score_tile.h.
#include "attention/score_tile.h"

#include <algorithm>
#include <cstring>

#include "attention/block_mask.h"

namespace headwise {
namespace {

struct MaskSummary {
  bool any = false;
  bool all = true;
  void Add(const std::uint8_t* bytes, std::int32_t count) {
    bool none_here = true;
    bool all_here = true;
    for (std::int32_t i = 0; i < count; ++i) {
      none_here &= bytes[i] == 0;
      all_here &= bytes[i] != 0;
    }
    any |= !none_here;
    all &= all_here;
  }
  void AddBits(const std::uint8_t* bits, std::int32_t first, std::int32_t count) {
    std::int32_t ones = 0;
    for (std::int32_t i = first; i < first + count; ++i) ones += (bits[i >> 3] >> (i & 7)) & 1;
    any |= ones > 0;
    all &= ones == count;
  }
};

const std::uint8_t* MaskRow(const AttentionArgs& args, const ScoreTile& tile, std::int32_t row) {
  const BroadcastStrides& s = args.mask_strides;
  const std::uint8_t* first =
      args.mask + std::int64_t{tile.batch} * s.batch + std::int64_t{tile.head} * s.head + std::int64_t{row} * s.row;
  return args.mask_bits != 0 ? first : first + std::int64_t{tile.key} * s.column;
}

// The first bit of a tile in a row of a mask of bits, and how many there are.
std::int32_t FirstBit(const AttentionArgs& args, const ScoreTile& tile) {
  return args.mask_strides.column == 0 ? 0 : tile.key;
}

const std::uint8_t* PaddingRow(const AttentionArgs& args, const ScoreTile& tile) {
  return args.key_padding_mask + std::int64_t{tile.batch} * args.keys + tile.key;
}

MaskSummary SummarizeMask(const AttentionArgs& args, const ScoreTile& tile) {
  MaskSummary summary;
  const std::int32_t columns = args.mask_strides.column == 0 ? 1 : tile.keys;
  const std::int32_t rows = args.mask_strides.row == 0 ? 1 : tile.rows;
  for (std::int32_t r = 0; r < rows; ++r) {
    if (args.mask_bits != 0) {
      summary.AddBits(MaskRow(args, tile, tile.row + r), FirstBit(args, tile), columns);
    } else {
      summary.Add(MaskRow(args, tile, tile.row + r), columns);
    }
    if (summary.any && !summary.all) break;
  }
  return summary;
}

void CopyRow(const AttentionCall& call, const ScoreTile& tile, std::int32_t r) {
  call.kernels->scale(tile.scores + r * tile.ld, tile.keys, static_cast<float>(UnitOf(tile.log2)),
                      call.Scores(tile.batch, tile.head, tile.row + r) + tile.key);
}

void MaskScores(const AttentionCall& call, const ScoreTile& tile, std::int32_t row, float* s) {
  const AttentionArgs& args = call.args;
  const std::uint8_t* mask = MaskRow(args, tile, row);
  if (args.mask_bits != 0) {
    call.kernels->mask_bits(s, tile.keys, mask, FirstBit(args, tile), args.mask_strides.column);
  } else {
    call.kernels->mask(s, tile.keys, mask, args.mask_strides.column);
  }
}

// Hides the keys of a tile's row that lie in none of the stretches that `each` calls its argument with.
template <class Each>
void HideOthers(const AttentionCall& call, const ScoreTile& tile, float* s, Each&& each) {
  std::int32_t at = tile.key;
  const auto hide_until = [&](std::int32_t begin) {
    if (at < begin) call.kernels->hide(s, at - tile.key, begin - tile.key);
  };
  each([&](std::int32_t begin, std::int32_t end) {
    hide_until(begin);
    at = end;
  });
  hide_until(tile.key + tile.keys);
}

void FillRow(float* to, std::int32_t count) { std::fill(to, to + count, -std::numeric_limits<float>::infinity()); }

}  // namespace

void HideScores(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile, std::int32_t row,
                float* s) {
  const AttentionArgs& args = call.args;
  if (args.mask != nullptr) MaskScores(call, tile, row, s);
  if (args.key_padding_mask != nullptr) call.kernels->mask(s, tile.keys, PaddingRow(args, tile), 1);
  const KeyRange seen = visibility.Row(row);
  if (visibility.ring() || seen.begin > tile.key || seen.end < tile.key + tile.keys) {
    HideOthers(call, tile, s,
               [&](auto&& see) { visibility.ForEachVisible(seen, tile.key, tile.key + tile.keys, see); });
  }
  if (const BlockMask blocks(args); blocks.given()) {
    HideOthers(call, tile, s, [&](auto&& see) { blocks.ForEachListed(row, tile.key, tile.key + tile.keys, see); });
  }
}

TileMasks ClassifyTile(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile) {
  const AttentionArgs& args = call.args;
  const std::int32_t last_row = tile.row + tile.rows;
  const std::int32_t last_key = tile.key + tile.keys;
  if (visibility.CountVisible(visibility.Union(tile.row, last_row), tile.key, last_key) == 0) return TileMasks::kHidden;
  bool open = visibility.CountVisible(visibility.Intersection(tile.row, last_row), tile.key, last_key) == tile.keys;
  if (const BlockMask blocks(args); blocks.given()) {
    const BlockMask::Summary listed = blocks.Summarize(tile.row, tile.rows, tile.key, last_key);
    if (listed.begin >= listed.end) return TileMasks::kHidden;
    open &= listed.all;
  }
  if (args.key_padding_mask != nullptr) {
    MaskSummary padding;
    padding.Add(PaddingRow(args, tile), tile.keys);
    if (!padding.any) return TileMasks::kHidden;
    open &= padding.all;
  }
  if (args.mask != nullptr) {
    const MaskSummary mask = SummarizeMask(args, tile);
    if (!mask.any) return TileMasks::kHidden;
    open &= mask.all;
  }
  return open ? TileMasks::kOpen : TileMasks::kPartial;
}

void FinishScores(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile, TileMasks masks) {
  const AttentionArgs& args = call.args;
  const kernels::KernelTable& kernels = *call.kernels;
  const bool plain = call.only_masks && masks == TileMasks::kOpen && tile.width == tile.keys &&
                     args.score_stage == ScoreStage::kNone && args.weights == nullptr;
  if (plain) return;

  for (std::int32_t r = 0; r < tile.rows; ++r) {
    float* s = tile.scores + r * tile.ld;
    const std::int32_t row = tile.row + r;
    if (args.score_stage == ScoreStage::kRaw) CopyRow(call, tile, r);
    if (args.softcap > 0.0F) kernels.softcap(s, tile.width, args.softcap);
    if (args.score_stage == ScoreStage::kSoftcapped) CopyRow(call, tile, r);
    if (args.bias != nullptr) {
      const BroadcastStrides& b = args.bias_strides;
      kernels.add_bias(s, tile.keys,
                       args.bias + std::int64_t{tile.batch} * b.batch + std::int64_t{tile.head} * b.head +
                           std::int64_t{row} * b.row + std::int64_t{tile.key} * b.column,
                       b.column);
    }
    if (args.alibi_slopes != nullptr) {
      visibility.ForEachRun(tile.key, tile.key + tile.keys,
                            [&](std::int32_t begin, std::int32_t end, std::int32_t position) {
                              kernels.add_alibi(s + (begin - tile.key), end - begin, args.alibi_slopes[tile.head],
                                                static_cast<float>(visibility.Position(row) - position));
                            });
    }
    if (masks == TileMasks::kPartial) HideScores(call, visibility, tile, row, s);
    if (tile.keys < tile.width) kernels.hide(s, tile.keys, tile.width);
    if (args.score_stage == ScoreStage::kMasked) CopyRow(call, tile, r);
    // In the tile's units, normalised when the row is finished.
    if (float* weights = call.Weights(tile.batch, tile.head, row)) {
      std::memcpy(weights + tile.key, s, sizeof(float) * static_cast<std::size_t>(tile.keys));
    }
  }
}

bool ScoresNeedProducts(const AttentionCall& call) {
  return call.args.score_stage == ScoreStage::kRaw || call.args.score_stage == ScoreStage::kSoftcapped;
}

void FinishHiddenTile(const AttentionCall& call, const ScoreTile& tile) {
  const AttentionArgs& args = call.args;
  if (args.score_stage == ScoreStage::kNone && args.weights == nullptr) return;
  for (std::int32_t r = 0; r < tile.rows; ++r) {
    const std::int32_t row = tile.row + r;
    if (args.score_stage == ScoreStage::kSoftcapped && args.softcap > 0.0F) {
      call.kernels->softcap(tile.scores + r * tile.ld, tile.width, args.softcap);
    }
    if (ScoresNeedProducts(call)) CopyRow(call, tile, r);
    if (args.score_stage == ScoreStage::kMasked) {
      FillRow(call.Scores(tile.batch, tile.head, row) + tile.key, tile.keys);
    }
    if (float* weights = call.Weights(tile.batch, tile.head, row)) FillRow(weights + tile.key, tile.keys);
  }
}

}  // namespace headwise
