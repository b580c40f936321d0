// Cache: one step: rotate, append, attend, and only then grow. Start reading at Prepare.
#include <algorithm>
#include <cstring>
#include <new>

#include "attention/cells.h"
#include "headwise/kv_cache.h"
#include "kernels/kernel_table.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {
namespace {

// Tokens of one head that a task appends.
constexpr std::int32_t kAppendRows = 32;

constexpr std::int32_t Blocks(std::int32_t rows) { return (rows + kAppendRows - 1) / kAppendRows; }

}  // namespace

// Tokens first ... first + rows - 1 of the step: all of them, unless a ring must make room in between.
struct KeyValueStep::Piece {
  Piece* next = nullptr;
  KeyValueStep* step = nullptr;
  KeyValueCache* cache = nullptr;
  std::int32_t first = 0;
  std::int32_t rows = 0;
  AttentionForward attention;
  // [B]
  std::int32_t* starts = nullptr;    // position of the piece's first token
  std::int32_t* counts = nullptr;    // tokens of the piece
  std::int32_t* occupied = nullptr;  // slots in use after it
  std::int32_t* totals = nullptr;    // length after it

  void Append(std::int64_t index) const;
  std::int32_t SlotOf(std::int32_t position) const {
    const std::int32_t sinks = cache->config_.sink_tokens;
    const std::int32_t ring = cache->ring_size();
    return ring == 0 || position < sinks ? position : sinks + (position - sinks) % ring;
  }
};

// A task appends a block of one head's tokens.
void KeyValueStep::Piece::Append(std::int64_t index) const {
  const KeyValueCacheConfig& c = cache->config_;
  const kernels::KernelTable& kernels = kernels::Kernels();
  const AttentionArgs& call = step->call_;
  const auto block = static_cast<std::int32_t>(index % Blocks(rows));
  const std::int64_t head = index / Blocks(rows);
  const auto b = static_cast<std::int32_t>(head / c.kv_heads);
  const std::int64_t g = head % c.kv_heads;
  const std::int32_t end = std::min((block + 1) * kAppendRows, counts[b]);
  for (std::int32_t i = block * kAppendRows; i < end; ++i) {
    const auto offset = [&](const Strides& s) {
      return std::int64_t{b} * s.batch + g * s.head + (std::int64_t{first} + i) * s.row;
    };
    const float* const key = call.k + offset(call.k_strides);
    const float* const value = call.v + offset(call.v_strides);
    const std::int64_t row = head * c.capacity + SlotOf(starts[b] + i);
    const std::int64_t key_cell = row * c.head_dim;
    const std::int64_t value_cell = row * c.value_dim;
    switch (c.cell_type) {
      case CellType::kFloat32:
        std::copy_n(key, c.head_dim, static_cast<float*>(cache->keys_) + key_cell);
        std::copy_n(value, c.value_dim, static_cast<float*>(cache->values_) + value_cell);
        break;
      case CellType::kFloat16:
        kernels.narrow_half(key, c.head_dim, static_cast<std::uint16_t*>(cache->keys_) + key_cell);
        kernels.narrow_half(value, c.value_dim, static_cast<std::uint16_t*>(cache->values_) + value_cell);
        break;
      case CellType::kInt8:
        cache->key_scales_[row] =
            kernels.narrow_int8(key, c.head_dim, static_cast<std::int8_t*>(cache->keys_) + key_cell);
        cache->value_scales_[row] =
            kernels.narrow_int8(value, c.value_dim, static_cast<std::int8_t*>(cache->values_) + value_cell);
        break;
    }
  }
}

KeyValueStep::~KeyValueStep() {
  if (claimed_) cache_->busy_ = false;
  for (Piece* piece = pieces_; piece != nullptr;) {
    Piece* const next = piece->next;
    piece->~Piece();
    FreeAligned(piece);
    piece = next;
  }
  FreeAligned(starts_);
  FreeAligned(rotated_);
}

Status KeyValueStep::Check() const {
  const KeyValueCacheConfig& c = cache_->config_;
  if (cache_->busy_) return Status::InvalidValue("cache");
  if (call_.batch != c.batch) return Status::InvalidShape("batch");
  if (call_.kv_heads != c.kv_heads) return Status::InvalidShape("kv_heads");
  if (call_.head_dim != c.head_dim) return Status::InvalidShape("head_dim");
  if (call_.value_dim != c.value_dim) return Status::InvalidShape("value_dim");
  if (call_.queries < 0) return Status::InvalidShape("queries");
  const bool empty = c.batch == 0 || c.kv_heads == 0 || call_.queries == 0;
  if (!empty && c.head_dim > 0 && call_.k == nullptr) return Status::InvalidValue("k");
  if (!empty && c.value_dim > 0 && call_.v == nullptr) return Status::InvalidValue("v");
  std::int32_t longest = 0;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    if (Count(b) < 0 || Count(b) > call_.queries) return Status::InvalidValue("q_lengths");
    const std::int64_t length = std::int64_t{cache_->lengths_[b]} + Count(b);
    // Positions are of 32 bits; half of them leaves room for the windows' arithmetic.
    const std::int64_t most = c.window > 0 ? std::int64_t{1} << 30 : c.capacity;
    if (length > most) return Status::InvalidShape("k");
    longest = std::max(longest, static_cast<std::int32_t>(length));
  }
  if (c.window > 0) {
    if (call_.causal == 0 && call_.q != nullptr) return Status::InvalidValue("causal");
    if (call_.mask != nullptr) return Status::InvalidValue("mask");
    if (call_.bias != nullptr) return Status::InvalidValue("bias");
    if (call_.key_padding_mask != nullptr) return Status::InvalidValue("key_padding_mask");
    if (call_.block_size != 0) return Status::InvalidValue("block_size");
    if (call_.weights != nullptr) return Status::InvalidValue("weights");
    if (call_.scores != nullptr) return Status::InvalidValue("scores");
  } else if (call_.q != nullptr && call_.keys != longest) {
    return Status::InvalidShape("keys");
  }
  return Status::Ok();
}

// Turned keys and queries go to memory of the step, with the strides of [B,G,L,D]; from then on they are the call's.
Status KeyValueStep::Rotate(Job& job) {
  const KeyValueCacheConfig& c = cache_->config_;
  const auto size = static_cast<std::uint64_t>(c.head_dim);
  const std::uint64_t rows = static_cast<std::uint64_t>(c.batch) * static_cast<std::uint64_t>(call_.queries);
  const std::uint64_t keys = CheckedMul(CheckedMul(rows, static_cast<std::uint64_t>(c.kv_heads)), size);
  const std::uint64_t queries =
      call_.q == nullptr ? 0 : CheckedMul(CheckedMul(rows, static_cast<std::uint64_t>(call_.heads)), size);
  const std::uint64_t bytes = CheckedMul(CheckedAdd(keys, queries), sizeof(float));
  rotated_ = static_cast<float*>(AllocateAligned(bytes));
  if (rotated_ == nullptr) return Status::OutOfMemory(bytes);

  const auto rotation = [&](std::int32_t heads, const float* x, const Strides& strides, float* y) {
    RotaryArgs args;
    args.batch = c.batch;
    args.heads = heads;
    args.rows = call_.queries;
    args.size = c.head_dim;
    args.dim = c.rope_dim;
    args.interleaved = c.rope_interleaved;
    args.base = c.rope_base;
    args.scaling = c.rope_scaling;
    args.x = x;
    args.y = y;
    args.x_strides = strides;
    args.y_strides = {heads * call_.queries * c.head_dim, call_.queries * c.head_dim, c.head_dim};
    args.positions = starts_;
    return args;
  };
  key_rotation_ = rotation(c.kv_heads, call_.k, call_.k_strides, rotated_);
  call_.k = rotated_;
  call_.k_strides = key_rotation_.y_strides;
  if (const Status status = AddRotary(key_rotation_, job); !status.ok()) return status;
  if (call_.q == nullptr) return Status::Ok();
  query_rotation_ = rotation(call_.heads, call_.q, call_.q_strides, rotated_ + keys);
  call_.q = query_rotation_.y;
  call_.q_strides = query_rotation_.y_strides;
  return AddRotary(query_rotation_, job);
}

Status KeyValueStep::AddPiece(std::int32_t first, std::int32_t rows, ThreadPool& pool, Job& job) {
  const KeyValueCacheConfig& c = cache_->config_;
  const auto batch = static_cast<std::uint64_t>(c.batch);
  const auto walk = [batch](void* block, Piece& piece) {
    Carver carver(block);
    carver.Take<Piece>(1);
    for (std::int32_t** array : {&piece.starts, &piece.counts, &piece.occupied, &piece.totals}) {
      *array = carver.Take<std::int32_t>(batch);
    }
    return carver.used();
  };
  Piece measured;
  const std::uint64_t bytes = walk(nullptr, measured);
  void* const place = AllocateAligned(bytes);
  if (place == nullptr) return Status::OutOfMemory(bytes);
  auto* const piece = new (place) Piece;
  walk(place, *piece);
  piece->next = pieces_;
  pieces_ = piece;
  piece->step = this;
  piece->cache = cache_;
  piece->first = first;
  piece->rows = rows;
  std::int32_t slots = 0;
  for (std::int32_t b = 0; b < c.batch; ++b) {
    piece->starts[b] = starts_[b] + std::min(first, Count(b));
    piece->counts[b] = std::clamp(Count(b) - first, 0, rows);
    piece->totals[b] = piece->starts[b] + piece->counts[b];
    piece->occupied[b] = std::min(piece->totals[b], c.capacity);
    slots = std::max(slots, piece->occupied[b]);
  }

  const TaskFunction append = [](void* context, std::int64_t index, int /*thread*/) {
    static_cast<const Piece*>(context)->Append(index);
  };
  const std::int64_t tasks = std::int64_t{c.batch} * c.kv_heads * Blocks(rows);
  const double cells = double(c.batch) * c.kv_heads * rows * (double(c.head_dim) + c.value_dim);
  if (const Status status = job.AddPhase(tasks, append, piece, cells); !status.ok()) return status;

  if (call_.q != nullptr) {
    AttentionArgs args = call_;
    const auto moved = [first](const Strides& s) { return std::int64_t{first} * s.row; };
    args.queries = rows;
    args.keys = slots;
    args.q += moved(args.q_strides);
    args.out += moved(args.out_strides);
    if (args.log_sum_exp != nullptr) {
      args.log_sum_exp += first;
      args.log_sum_exp_strides = {call_.heads * call_.queries, call_.queries, 1};
    }
    // Cells of any type travel as floats, see cell_type.
    args.k = static_cast<const float*>(cache_->keys_);
    args.v = static_cast<const float*>(cache_->values_);
    args.k_strides = {c.kv_heads * c.capacity * c.head_dim, c.capacity * c.head_dim, c.head_dim};
    args.v_strides = {c.kv_heads * c.capacity * c.value_dim, c.capacity * c.value_dim, c.value_dim};
    args.cell_type = c.cell_type;
    args.k_scales = cache_->key_scales_;
    args.v_scales = cache_->value_scales_;
    args.scale_strides = {c.kv_heads * c.capacity, c.capacity, 1};
    args.q_lengths = piece->counts;
    args.kv_lengths = piece->occupied;
    args.causal_offsets = piece->starts;
    args.q_starts = nullptr;
    args.k_starts = nullptr;
    args.ring_size = cache_->ring_size();
    if (args.ring_size > 0) {
      args.window_left = c.window - 1;
      args.sink_tokens = c.sink_tokens;
      args.ring_totals = piece->totals;
    }
    if (const Status status = piece->attention.Prepare(args, pool, job); !status.ok()) return status;
  }

  const TaskFunction grow = [](void* context, std::int64_t /*index*/, int /*thread*/) {
    const auto* done = static_cast<const Piece*>(context);
    std::copy_n(done->totals, done->cache->config_.batch, done->cache->lengths_);
  };
  return job.AddPhase(1, grow, piece);
}

Status KeyValueStep::Prepare(const KeyValueStepArgs& args, ThreadPool& pool, Job& job) {
  cache_ = args.cache;
  call_ = args.call;
  if (const Status status = Check(); !status.ok()) return status;
  cache_->busy_ = claimed_ = true;
  const KeyValueCacheConfig& c = cache_->config_;
  const std::uint64_t bytes = static_cast<std::uint64_t>(c.batch) * sizeof(std::int32_t);
  starts_ = static_cast<std::int32_t*>(AllocateAligned(bytes));
  if (starts_ == nullptr) return Status::OutOfMemory(bytes);
  std::copy_n(cache_->lengths_, c.batch, starts_);
  if (c.rope_dim > 0 && call_.queries > 0) {
    if (const Status status = Rotate(job); !status.ok()) return status;
  }
  // A piece overwrites no key that its own first query, or the next one should it be given up, still sees.
  const std::int32_t ring = cache_->ring_size();
  const std::int32_t most = ring > 0 ? ring - c.window + 1 : std::max(call_.queries, 1);
  for (std::int32_t first = 0; first < call_.queries; first += most) {
    if (const Status status = AddPiece(first, std::min(most, call_.queries - first), pool, job); !status.ok()) {
      return status;
    }
  }
  return Status::Ok();
}

}  // namespace headwise
