// Driver: the part of a product that one task computes. Shared by the matrix product and the convolution.
#pragma once

#include <cstdint>

#include "gemm/plan.h"
#include "headwise/gemm.h"

namespace headwise {

// The tile of the kernel that all products run on.
GemmTileShape TileOfProducts();

// C[rows, columns of the block] = bias, or 0 without one. `c` is the block's first row at column 0 of the matrix.
void FillBlock(const GemmBlock& block, const float* bias, float* c, std::int64_t c_row_stride);

// C += A * W[k_begin ... k_begin + k - 1, columns of the block], over `rows` rows from `a` and `c` on; `c` is at column
// 0 of the matrix, `block.column_begin` at the start of a panel. The sum over k runs in ascending order in blocks of
// `k_block`.
void MultiplyBlock(const PackedMatrix& w, std::int32_t k_begin, std::int32_t k, std::int32_t k_block,
                   const GemmBlock& block, std::int32_t rows, const float* a, std::int64_t a_row_stride, float* c,
                   std::int64_t c_row_stride);

}  // namespace headwise
