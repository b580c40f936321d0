// Attention driver: see cells.h.
#include "attention/cells.h"

namespace headwise {
namespace {

FloatRows Rows(const AttentionCall& call, const float* data, std::int64_t offset, std::int32_t stride,
               const float* scales, std::int32_t scale_stride, std::int32_t count, std::int32_t size, float* wide) {
  switch (call.args.cell_type) {
    case CellType::kFloat16:
      call.kernels->widen_half(reinterpret_cast<const std::uint16_t*>(data) + offset, stride, count, size, wide);
      return {wide, size};
    case CellType::kInt8:
      call.kernels->widen_int8(reinterpret_cast<const std::int8_t*>(data) + offset, stride, count, size, scales,
                               scale_stride, wide);
      return {wide, size};
    case CellType::kFloat32:
      break;
  }
  return {data + offset, stride};
}

kernels::ReadAhead Ahead(const AttentionCall& call, const float* data, std::int64_t offset, std::int32_t stride,
                         std::int32_t count, std::int32_t size) {
  const auto cell = static_cast<std::ptrdiff_t>(CellBytes(call.args.cell_type));
  return {reinterpret_cast<const unsigned char*>(data) + offset * cell, stride * cell, size * cell,
          kernels::ReadAhead::kStep * cell, count};
}

}  // namespace

kernels::ReadAhead KeysAhead(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key,
                             std::int32_t count) {
  return Ahead(call, call.args.k, call.KeyOffset(b, g, key), call.args.k_strides.row, count, call.args.head_dim);
}

kernels::ReadAhead ValuesAhead(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key,
                               std::int32_t count) {
  return Ahead(call, call.args.v, call.ValueOffset(b, g, key), call.args.v_strides.row, count, call.args.value_dim);
}

FloatRows KeyRows(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key, std::int32_t count,
                  float* wide) {
  const AttentionArgs& args = call.args;
  const float* scales = args.k_scales == nullptr ? nullptr : args.k_scales + call.ScaleOffset(b, g, key);
  return Rows(call, args.k, call.KeyOffset(b, g, key), args.k_strides.row, scales, args.scale_strides.row, count,
              args.head_dim, wide);
}

FloatRows ValueRows(const AttentionCall& call, std::int32_t b, std::int32_t g, std::int32_t key, std::int32_t count,
                    float* wide) {
  const AttentionArgs& args = call.args;
  const float* scales = args.v_scales == nullptr ? nullptr : args.v_scales + call.ScaleOffset(b, g, key);
  return Rows(call, args.v, call.ValueOffset(b, g, key), args.v_strides.row, scales, args.scale_strides.row, count,
              args.value_dim, wide);
}

}  // namespace headwise
