// Layer: one parameter of a layer, immutable once made, shared by the layer and the calls in progress.
#pragma once

#include "headwise/gemm.h"
#include "headwise/multi_head_attention.h"

namespace headwise {

// Kernels are packed as the matrix that their product uses. Biases and score kernels are one row, [1, n]: its panels
// are adjacent, so values() is the plain vector.
struct LayerParameter {
  int references = 1;
  PackedMatrix matrix;

  const float* values() const { return matrix.panels(); }
};

struct MatrixShape {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
};
MatrixShape MatrixOfParameter(const MultiHeadAttentionConfig& config, ParameterKind kind);

// Takes a copy of ShapeOfParameter(config, kind).elements() floats. `made` holds one reference.
Status MakeParameter(const MultiHeadAttentionConfig& config, ParameterKind kind, const float* source,
                     LayerParameter*& made);

// References are counted on the thread that prepares calls, hence plain integers. Both accept null.
void Retain(LayerParameter* parameter);
void Release(LayerParameter* parameter);

}  // namespace headwise
