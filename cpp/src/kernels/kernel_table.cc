// Kernel table: fills the table from the kernels, and holds the constants that they read from memory.
#include "kernels/kernel_table.h"

#include <limits>

#include "kernels/additive_tile.h"
#include "kernels/cells.h"
#include "kernels/column_sums.h"
#include "kernels/direct_tile.h"
#include "kernels/elementwise.h"
#include "kernels/exp2.h"
#include "kernels/gelu.h"
#include "kernels/gemm_tile.h"
#include "kernels/pack.h"
#include "kernels/score_row.h"
#include "kernels/softmax_backward_tile.h"
#include "kernels/softmax_tile.h"
#include "kernels/tanh.h"
#include "kernels/transpose.h"
#include "kernels/weights_row.h"

namespace headwise::kernels {

// Not const: a constant with a known value would be folded back into literals.
Exp2Constants exp2_constants = {
    12583039.0F,  // 1.5 * 2^23 + 127
    -127.0F,
    1.44269504088896340736F,
    // Minimax in relative error on [-1/2, 1/2] with c0 = 1 (1.2 ULP with a multiply and an add, 1.0 fused). Degree 5
    // would save one operation of fourteen and cost 2.2 ULP.
    {1.0F, 0.6931471824645996F, 0.24022647738456726F, 0.055503323674201965F, 0.00961843691766262F,
     0.0013398875016719103F, 0.00015353361959569156F},
};
const Exp2Constants& kExp2Constants = exp2_constants;

HalfConstants half_constants = {
    -0x1.ffcp-96F,  // the bits 0x8fffe000
    0x1p112F,
    65536.0F,
    std::numeric_limits<float>::infinity(),
};
const HalfConstants& kHalfConstants = half_constants;

TanhConstants tanh_constants = {
    2.88539008177792681472F,  // 2 log2(e)
    9.1F,
    0.625F,
    {-0.3333328068256378F, 0.13331441581249237F, -0.05373971536755562F, 0.02063908614218235F, -0.005704986397176981F},
};
const TanhConstants& kTanhConstants = tanh_constants;

GeluConstants gelu_constants = {
    -14.0F,
    14.0F,
    -0.72134752044448170368F,
    0.25F,
    0.39894228040143267794F,
    {0.09441064298152924F, 0.17039774358272552F, 0.1243792176246643F, 0.07170678675174713F, 0.03086525946855545F,
     0.008497682400047779F, 0.00050367321819067F, -0.0006577137974090874F, -0.00016959768254309893F,
     6.63020764477551e-05F},
};
const GeluConstants& kGeluConstants = gelu_constants;

GeluTanhConstants gelu_tanh_constants = {
    kGeluTanhLow,
    -kGeluTanhLow,
    {-2.30220819813960F, -0.10294323957981F},  // -2 sqrt(2/pi) log2(e), times 0.044715
    {1.59576912160573F, 0.21406444881779F},    // 2 sqrt(2/pi), times 3 * 0.044715
};
const GeluTanhConstants& kGeluTanhConstants = gelu_tanh_constants;

namespace {

KernelTable table = {
    simd::kLanes,
    GemmTile::kPanel,
    GemmTile::kRows,
    simd::kName,
    &GemmTile::Run<GemmTile::Into::kStore>,
    &GemmTile::Run<GemmTile::Into::kAdd>,
    &AdditiveTile::Run,
    &SoftmaxTile::Run<true>,
    &SoftmaxTile::Run<false>,
    &WeightsRow::Run<true>,
    &WeightsRow::Run<false>,
    &Pack::Transposed,
    &Pack::Columns,
    &Pack::Sanitize,
    &Elementwise::Scale,
    &Elementwise::Divide,
    &Elementwise::ScaleRows,
    &Elementwise::Norms,
    &ScoreRow::Softcap,
    &ScoreRow::AddBias,
    &ScoreRow::AddAlibi,
    &ScoreRow::Mask,
    &ScoreRow::MaskBits,
    &ScoreRow::Hide,
    &ScoreRow::Visible,
    &DirectTile::Scores,
    &DirectTile::AdditiveScores,
    &DirectTile::Values,
    &Cells::WidenHalf,
    &Cells::WidenInt8,
    &Cells::NarrowHalf,
    &Cells::NarrowInt8,
    &Transpose::Rows,
    &Transpose::FromPanels,
    &SoftmaxBackwardTile::Run,
    &SoftmaxBackwardTile::RunExact,
    &SoftmaxBackwardTile::ApplyCapSlope,
    &Gelu::Run<false>,
    &Gelu::Run<true>,
    &Gelu::RunSlope<false>,
    &Gelu::RunSlope<true>,
    &ColumnSums::Run,
    &ColumnSums::RunNormalized,
};

}  // namespace

const KernelTable& Kernels() { return table; }

void UseShortTurns(bool is_short) {
  using Into = GemmTile::Into;
  table.gemm_store = is_short ? &GemmTile::RunShort<Into::kStore> : &GemmTile::Run<Into::kStore>;
  table.gemm_add = is_short ? &GemmTile::RunShort<Into::kAdd> : &GemmTile::Run<Into::kAdd>;
}

}  // namespace headwise::kernels
