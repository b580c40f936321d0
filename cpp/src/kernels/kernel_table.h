// Kernel table: the kernels as plain functions and the sizes they declare, for drivers that know nothing of SIMD.
//
// They are called through this table, never directly: V8 replaces a function's baseline code only at its next call, so
// a kernel must stay a function that is called once per tile, and the linker's optimizer inlines any function with a
// single caller, whatever `noinline` says; a call through a table it leaves alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/read_ahead.h"

namespace headwise::kernels {

using GemmFunction = void (*)(int rows, const float* a, std::ptrdiff_t lda, const float* panel, int k, float* c,
                              std::ptrdiff_t ldc);

struct KernelTable {
  int lanes;     // floats in a vector
  int panel;     // columns of a packed panel
  int row_tile;  // rows that a GEMM tile shares loads over; other counts are slower, never wrong
  const char* name;

  // GemmTile: C = A P, C += A P.
  GemmFunction gemm_store;
  GemmFunction gemm_add;
  // AdditiveTile.
  void (*additive_scores)(int rows, const float* q, std::ptrdiff_t ldq, const float* panel, int k, const float* weights,
                          float* s, std::ptrdiff_t lds);
  // SoftmaxTile, scores in units of ln 2 and natural.
  bool (*softmax_log2)(int rows, int width, float* s, std::ptrdiff_t ld, const float* norms, float key_norm, float lift,
                       float* max, float* sums, float* rescale);
  bool (*softmax_natural)(int rows, int width, float* s, std::ptrdiff_t ld, const float* norms, float key_norm,
                          float lift, float* max, float* sums, float* rescale);
  // target[i] = e^(s[i] - max) * factor (2^ in units of ln 2), any count.
  void (*weights_log2)(float* s, std::ptrdiff_t count, float max, float factor);
  void (*weights_natural)(float* s, std::ptrdiff_t count, float max, float factor);
  // Pack.
  void (*pack_transposed)(const float* source, std::ptrdiff_t stride, int count, int size, float* panels);
  float (*pack_columns)(const float* source, std::ptrdiff_t stride, int count, int size, float* panels,
                        std::ptrdiff_t panel_stride);
  void (*sanitize)(float* data, std::ptrdiff_t count);
  // Elementwise.
  void (*scale)(const float* source, int count, float factor, float* target);
  void (*divide)(const float* source, int count, float divisor, float* target);
  void (*scale_rows)(const float* source, std::ptrdiff_t stride, int rows, int size, float factor, bool add,
                     float* target, std::ptrdiff_t target_stride);
  float (*norms)(const float* source, std::ptrdiff_t stride, int rows, int size, float* norms);
  // ScoreRow.
  void (*softcap)(float* s, int width, float cap);
  void (*add_bias)(float* s, int keys, const float* bias, std::ptrdiff_t column_stride);
  void (*add_alibi)(float* s, int keys, float slope, float distance);
  void (*mask)(float* s, int keys, const std::uint8_t* mask, std::ptrdiff_t column_stride);
  void (*mask_bits)(float* s, int keys, const std::uint8_t* bits, std::ptrdiff_t first, std::ptrdiff_t column_stride);
  void (*hide)(float* s, int from, int to);
  void (*visible)(const float* s, int width, std::uint8_t* visible);
  // DirectTile.
  void (*direct_scores)(int rows, const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride, int count,
                        int head_dim, float* s, std::ptrdiff_t lds, ReadAhead ahead);
  void (*direct_additive)(int rows, const float* q, std::ptrdiff_t ldq, const float* k, std::ptrdiff_t stride,
                          int count, int head_dim, const float* weights, float* s, std::ptrdiff_t lds);
  void (*direct_values)(int rows, const float* p, std::ptrdiff_t ldp, const std::uint8_t* visible, const float* v,
                        std::ptrdiff_t stride, int count, int value_dim, const float* rescale, float* acc,
                        std::ptrdiff_t ld_acc, ReadAhead ahead);
  // Cells.
  void (*widen_half)(const std::uint16_t* source, std::ptrdiff_t stride, int count, int size, float* target);
  void (*widen_int8)(const std::int8_t* source, std::ptrdiff_t stride, int count, int size, const float* scales,
                     std::ptrdiff_t scale_stride, float* target);
  void (*narrow_half)(const float* source, int size, std::uint16_t* target);
  float (*narrow_int8)(const float* source, int size, std::int8_t* target);
  // Transpose.
  bool (*transpose)(const float* source, std::ptrdiff_t stride, int rows, int size, float* target,
                    std::ptrdiff_t target_stride);
  void (*from_panels)(const float* panels, int rows, int size, float factor, bool add, float* target,
                      std::ptrdiff_t stride);
  // SoftmaxBackwardTile, from the row's log-sum-exp, and from its maximum and factor.
  void (*softmax_backward)(int rows, float* s, float* dp, const float* shift, const float* delta, const float* dropout,
                           float* ds, std::ptrdiff_t ld);
  void (*softmax_backward_exact)(int rows, float* s, float* dp, const float* shift, const float* factor,
                                 const float* delta, const float* dropout, float* ds, std::ptrdiff_t ld);
  void (*cap_slope)(int rows, const float* capped, float cap, float* dp, float* ds, std::ptrdiff_t ld);
  // Gelu, exact and by tanh.
  void (*gelu)(const float* x, std::ptrdiff_t count, float* y);
  void (*gelu_tanh)(const float* x, std::ptrdiff_t count, float* y);
  void (*gelu_slope)(const float* x, const float* d_y, std::ptrdiff_t count, float* d_x);
  void (*gelu_tanh_slope)(const float* x, const float* d_y, std::ptrdiff_t count, float* d_x);
  // ColumnSums.
  void (*sum_columns)(const float* x, std::ptrdiff_t stride, std::ptrdiff_t rows, int columns, double* sums);
  void (*sum_normalized)(const float* g, const float* x, std::ptrdiff_t stride, std::ptrdiff_t rows, int columns,
                         const float* mean, const float* inverse, double* sums);
};

// The table in use.
const KernelTable& Kernels();

// Chooses the products' kernels by what the engine's compiler can do with long loops: speed changes, no bit does. Not while a
// call is in progress.
void UseShortTurns(bool is_short);

}  // namespace headwise::kernels
