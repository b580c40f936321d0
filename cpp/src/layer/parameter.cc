// Layer: one parameter of a layer.
#include "layer/parameter.h"

#include <new>

namespace headwise {

MatrixShape MatrixOfParameter(const MultiHeadAttentionConfig& config, ParameterKind kind) {
  const ParameterShape shape = ShapeOfParameter(config, kind);
  const std::int64_t elements = shape.elements();
  std::int64_t rows = 1;
  switch (kind) {
    case ParameterKind::kQueryKernel:
    case ParameterKind::kKeyKernel:
    case ParameterKind::kValueKernel:
      // [..., in, heads, size]: all but the last two axes are summed over.
      rows = shape.rank == 4 ? std::int64_t{shape.axes[0]} * shape.axes[1] : shape.axes[0];
      break;
    case ParameterKind::kOutputKernel:
      rows = std::int64_t{shape.axes[0]} * shape.axes[1];
      break;
    default:
      break;
  }
  return {static_cast<std::int32_t>(rows), static_cast<std::int32_t>(elements / rows)};
}

Status MakeParameter(const MultiHeadAttentionConfig& config, ParameterKind kind, const float* source,
                     LayerParameter*& made) {
  const MatrixShape shape = MatrixOfParameter(config, kind);
  auto* const parameter = new (std::nothrow) LayerParameter;
  if (parameter == nullptr) return Status::OutOfMemory(sizeof(LayerParameter));
  const Status status = parameter->matrix.Pack(source, shape.rows, shape.columns, shape.columns, 1);
  if (!status.ok()) {
    Release(parameter);
    return status;
  }
  made = parameter;
  return Status::Ok();
}

void Retain(LayerParameter* parameter) {
  if (parameter != nullptr) ++parameter->references;
}

void Release(LayerParameter* parameter) {
  if (parameter != nullptr && --parameter->references == 0) delete parameter;
}

}  // namespace headwise
