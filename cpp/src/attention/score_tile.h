// Attention driver: what lies between a tile's products and its softmax, in the order of the public semantics: softcap,
// bias and ALiBi, masks; and the copies that the caller asked for at each stage.
#pragma once

#include <cstdint>

#include "attention/call.h"
#include "attention/visibility.h"

namespace headwise {

// A rectangle of one head's scores. `width` >= keys is what the softmax runs over; the padding is hidden.
struct ScoreTile {
  std::int32_t batch, head;
  std::int32_t row, rows;
  std::int32_t key, keys;
  std::int32_t width;
  float* scores;
  std::int64_t ld;
  bool log2;  // scores are in units of ln 2
};

enum class TileMasks {
  kHidden,   // no key of the tile is visible to any of its rows
  kPartial,  // some masks must be applied
  kOpen,     // every key is visible to every row
};

// What the interval of each row, the mask and the padding mask say of a tile, before anything is computed. A bias is
// not looked at.
TileMasks ClassifyTile(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile);

// Turns products into masked scores in place, hides the padding, and copies scores and unnormalised weights out.
void FinishScores(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile, TileMasks masks);

// Hides what row `row` of a partly masked tile may not see: `s` are its scores.
void HideScores(const AttentionCall& call, const Visibility& visibility, const ScoreTile& tile, std::int32_t row,
                float* s);

// For a tile that is skipped: what the caller's score and weight tensors hold there. Needs the products in the tile
// when ScoresNeedProducts, else nothing.
void FinishHiddenTile(const AttentionCall& call, const ScoreTile& tile);
bool ScoresNeedProducts(const AttentionCall& call);

}  // namespace headwise
