// Attention driver: sizes, strides and pointers that fit together, before any work.
#include <cmath>

#include "headwise/attention.h"

namespace headwise {

Status CheckAttention(const AttentionArgs& a) {
  if (a.batch < 0) return Status::InvalidShape("batch");
  if (a.queries < 0) return Status::InvalidShape("queries");
  if (a.keys < 0) return Status::InvalidShape("keys");
  if (a.head_dim < 0) return Status::InvalidShape("head_dim");
  if (a.value_dim < 0) return Status::InvalidShape("value_dim");
  if (a.heads < 0) return Status::InvalidShape("heads");
  if (a.kv_heads < 0 || (a.heads > 0 && (a.kv_heads == 0 || a.heads % a.kv_heads != 0))) {
    return Status::InvalidShape("kv_heads");
  }
  if (!std::isfinite(a.scale)) return Status::InvalidValue("scale");
  if (!std::isfinite(a.softcap) || a.softcap < 0.0F) return Status::InvalidValue("softcap");
  if (!(a.dropout_rate >= 0.0F && a.dropout_rate <= 1.0F)) return Status::InvalidValue("dropout_rate");
  if (a.window_left < -1) return Status::InvalidValue("window_left");
  if (a.window_right < -1) return Status::InvalidValue("window_right");
  if (a.score_kind == ScoreKind::kAdditive && a.additive_weights == nullptr && a.heads > 0 && a.head_dim > 0) {
    return Status::InvalidValue("additive_weights");
  }
  if ((a.score_stage == ScoreStage::kNone) != (a.scores == nullptr) && a.batch > 0 && a.heads > 0 && a.queries > 0 &&
      a.keys > 0) {
    return Status::InvalidValue("scores");
  }
  for (std::int32_t b = 0; a.kv_lengths != nullptr && b < a.batch; ++b) {
    if (a.kv_lengths[b] < 0 || a.kv_lengths[b] > a.keys) return Status::InvalidValue("kv_lengths");
  }
  for (std::int32_t b = 0; a.q_lengths != nullptr && b < a.batch; ++b) {
    if (a.q_lengths[b] < 0 || a.q_lengths[b] > a.queries) return Status::InvalidValue("q_lengths");
  }
  if ((a.q_starts == nullptr) != (a.k_starts == nullptr)) return Status::InvalidValue("k_starts");
  if (a.q_starts != nullptr) {
    if (a.q_lengths == nullptr) return Status::InvalidValue("q_lengths");
    if (a.kv_lengths == nullptr) return Status::InvalidValue("kv_lengths");
    if (a.mask != nullptr) return Status::InvalidValue("mask");
    if (a.bias != nullptr) return Status::InvalidValue("bias");
    if (a.key_padding_mask != nullptr) return Status::InvalidValue("key_padding_mask");
    if (a.block_size != 0) return Status::InvalidValue("block_size");
    if (a.weights != nullptr) return Status::InvalidValue("weights");
    if (a.scores != nullptr) return Status::InvalidValue("scores");
  }
  if (a.block_size < 0 || (a.block_size > 0 && a.block_rows == nullptr)) return Status::InvalidValue("block_size");
  if (a.cell_type == CellType::kInt8 && (a.k_scales == nullptr || a.v_scales == nullptr) && a.keys > 0) {
    return Status::InvalidValue("k_scales");
  }
  if (a.ring_size < 0 || a.sink_tokens < 0) return Status::InvalidValue("ring_size");
  if (a.ring_size > 0 && (a.ring_totals == nullptr || a.causal_offsets == nullptr || a.kv_lengths == nullptr)) {
    return Status::InvalidValue("ring_totals");
  }
  for (std::int32_t n = 0; a.weight_heads != nullptr && n < a.weight_head_count; ++n) {
    if (a.weight_heads[n] < 0 || a.weight_heads[n] >= a.heads) return Status::InvalidValue("weight_heads");
  }
  return Status::Ok();
}

}  // namespace headwise
