// Cache: the phases that a step's piece adds to its job: append and attend. Start reading at AddPiece.
#include <algorithm>

#include "attention/cells.h"
#include "cache/kv_piece.h"

namespace headwise {

Status KeyValueStep::AddPiece(std::int32_t first, std::int32_t rows, ThreadPool& pool, Job& job) {
  const KeyValueCacheConfig& c = cache_->config_;
  std::uint64_t bytes = 0;
  Piece* const piece = Piece::Make(c.batch, bytes);
  if (piece == nullptr) return Status::OutOfMemory(bytes);
  piece->next = pieces_;
  pieces_ = piece;
  piece->step = this;
  piece->cache = cache_;
  piece->first = first;
  piece->rows = rows;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    const std::int32_t s = c.sink_tokens;
    piece->starts[b] = starts_[b] + std::min(first, Count(b));
    piece->counts[b] = std::clamp(Count(b) - first, 0, rows);
    piece->totals[b] = piece->starts[b] + piece->counts[b];
    piece->occupied[b] = std::min(piece->totals[b], c.capacity);
    piece->sinks[b] = std::min(piece->totals[b], s);
    piece->ring_starts[b] = piece->starts[b] - s;
    piece->ring_totals[b] = piece->totals[b] - piece->sinks[b];
    piece->ring_occupied[b] = piece->occupied[b] - piece->sinks[b];
  }
  if (reads_) return AddAttention(*piece, pool, job);

  if (cache_->ring_size() > 0) {
    const TaskFunction claim = [](void* context, std::int64_t /*index*/, int /*thread*/) {
      static_cast<const Piece*>(context)->Claim();
    };
    if (const Status status = job.AddPhase(1, claim, piece); !status.ok()) return status;
  }
  const TaskFunction append = [](void* context, std::int64_t index, int /*thread*/) {
    static_cast<const Piece*>(context)->Append(index);
  };
  const std::int64_t tasks = std::int64_t{c.batch} * c.kv_heads * Piece::Blocks(rows);
  const double cells = double(c.batch) * c.kv_heads * rows * (double(c.head_dim) + c.value_dim);
  if (const Status status = job.AddPhase(tasks, append, piece, cells); !status.ok()) return status;
  if (call_.q != nullptr) {
    if (const Status status = AddAttention(*piece, pool, job); !status.ok()) return status;
  }
  const TaskFunction grow = [](void* context, std::int64_t /*index*/, int /*thread*/) {
    static_cast<const Piece*>(context)->Grow();
  };
  return job.AddPhase(1, grow, piece);
}

Status KeyValueStep::AddAttention(Piece& piece, ThreadPool& pool, Job& job) {
  const KeyValueCacheConfig& c = cache_->config_;
  const auto longest = [&c](const std::int32_t* lengths) {
    return c.batch == 0 ? 0 : *std::max_element(lengths, lengths + c.batch);
  };
  const std::int64_t first = piece.first;
  AttentionArgs args = call_;
  args.queries = piece.rows;
  args.keys = longest(piece.occupied);
  args.q += first * args.q_strides.row;
  args.out += first * args.out_strides.row;
  if (args.log_sum_exp != nullptr) args.log_sum_exp += first;
  args.log_sum_exp_strides = {call_.heads * call_.queries, call_.queries, 1};
  // Cells of any type travel as floats, see cell_type.
  args.k = static_cast<const float*>(cache_->keys_);
  args.v = static_cast<const float*>(cache_->values_);
  args.k_strides = {c.kv_heads * c.capacity * c.head_dim, c.capacity * c.head_dim, c.head_dim};
  args.v_strides = {c.kv_heads * c.capacity * c.value_dim, c.capacity * c.value_dim, c.value_dim};
  args.cell_type = c.cell_type;
  args.k_scales = cache_->key_scales_;
  args.v_scales = cache_->value_scales_;
  args.scale_strides = {c.kv_heads * c.capacity, c.capacity, 1};
  args.q_lengths = piece.counts;
  args.kv_lengths = piece.occupied;
  args.causal_offsets = piece.starts;
  args.q_starts = nullptr;
  args.k_starts = nullptr;
  args.ring_size = cache_->ring_size();
  if (args.ring_size > 0) {
    args.window_left = c.window - 1;
    args.sink_tokens = c.sink_tokens;
    args.ring_totals = piece.totals;
  }
  if (!apart_) return piece.attention.Prepare(args, pool, job);

  // Sink tokens are the first slots: without them the ring is one that begins there.
  args.sinks = nullptr;
  args.out_strides = {call_.heads * call_.queries * c.value_dim, call_.queries * c.value_dim, c.value_dim};
  args.out = outputs_ + first * c.value_dim;
  args.log_sum_exp = log_sum_exps_ + first;
  AttentionArgs sinks = args;
  const std::int64_t slots = c.sink_tokens;
  const auto behind = [&](const float* cells, std::int32_t size) {
    const auto bytes = static_cast<std::size_t>(slots * size) * CellBytes(c.cell_type);
    return reinterpret_cast<const float*>(reinterpret_cast<const unsigned char*>(cells) + bytes);
  };
  args.k = behind(args.k, c.head_dim);
  args.v = behind(args.v, c.value_dim);
  if (c.cell_type == CellType::kInt8) {
    args.k_scales += slots;
    args.v_scales += slots;
  }
  args.sink_tokens = 0;
  args.keys = longest(piece.ring_occupied);
  args.kv_lengths = piece.ring_occupied;
  args.causal_offsets = piece.ring_starts;
  args.ring_totals = piece.ring_totals;
  if (const Status status = piece.attention.Prepare(args, pool, job); !status.ok()) return status;

  const std::int64_t head_rows = std::int64_t{call_.batch} * call_.heads * call_.queries;
  sinks.q = sink_queries_ + first * call_.q_strides.row;
  sinks.out += head_rows * c.value_dim;
  sinks.log_sum_exp += head_rows;
  sinks.keys = longest(piece.sinks);
  sinks.kv_lengths = piece.sinks;
  sinks.ring_size = 0;
  sinks.sink_tokens = 0;
  sinks.window_left = -1;
  return piece.sink_attention.Prepare(sinks, pool, job);
}

}  // namespace headwise
