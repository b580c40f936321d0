// Driver: runs the tile kernel over one task's rows, panels and blocks of k.
#include "gemm/block.h"

#include <algorithm>
#include <cstddef>

#include "kernels/gemm_tile.h"
#include "kernels/kernel_table.h"

namespace headwise {
namespace {

using Tile = kernels::GemmTile;

// The last panel of a matrix may be wider than what is left of C: its tile is computed aside.
void AddEdge(const float* a, std::ptrdiff_t lda, const float* panel, std::int32_t k, std::int32_t rows,
             std::int32_t columns, float* c, std::ptrdiff_t ldc) {
  alignas(64) float tile[Tile::kRows * Tile::kPanel];
  for (std::int32_t row = 0; row < rows; row += Tile::kRows) {
    const std::int32_t count = std::min<std::int32_t>(Tile::kRows, rows - row);
    kernels::Kernels().gemm_store(count, a + row * lda, lda, panel, k, tile, Tile::kPanel);
    for (std::int32_t r = 0; r < count; ++r) {
      for (std::int32_t column = 0; column < columns; ++column) {
        c[(row + r) * ldc + column] += tile[r * Tile::kPanel + column];
      }
    }
  }
}

}  // namespace

GemmTileShape TileOfProducts() { return {Tile::kRows, Tile::kPanel}; }

void FillBlock(const GemmBlock& block, const float* bias, float* c, std::int64_t c_row_stride) {
  const std::int32_t columns = block.column_end - block.column_begin;
  for (std::int32_t row = 0; row < block.row_end - block.row_begin; ++row) {
    float* const to = c + row * c_row_stride + block.column_begin;
    if (bias != nullptr) {
      std::copy_n(bias + block.column_begin, columns, to);
    } else {
      std::fill_n(to, columns, 0.0F);
    }
  }
}

void MultiplyBlock(const PackedMatrix& w, std::int32_t k_begin, std::int32_t k, std::int32_t k_block,
                   const GemmBlock& block, std::int32_t rows, const float* a, std::int64_t a_row_stride, float* c,
                   std::int64_t c_row_stride) {
  const auto lda = static_cast<std::ptrdiff_t>(a_row_stride);
  const auto ldc = static_cast<std::ptrdiff_t>(c_row_stride);
  for (std::int32_t at = 0; at < k; at += k_block) {
    const std::int32_t depth = std::min(k_block, k - at);
    for (std::int32_t column = block.column_begin; column < block.column_end; column += Tile::kPanel) {
      // Panel number column / kPanel begins at rows * column floats: each holds rows * kPanel.
      const float* const panel =
          w.panels() + std::int64_t{w.rows()} * column + (std::int64_t{k_begin} + at) * Tile::kPanel;
      const std::int32_t columns = block.column_end - column;
      if (columns >= Tile::kPanel) {
        kernels::Kernels().gemm_add(rows, a + at, lda, panel, depth, c + column, ldc);
      } else {
        AddEdge(a + at, lda, panel, depth, rows, columns, c + column, ldc);
      }
    }
  }
}

}  // namespace headwise
