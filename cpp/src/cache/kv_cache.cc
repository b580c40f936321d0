// Cache: the memory of keys and values: life, copies, lengths.
#include "headwise/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention/cells.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {
namespace {

constexpr std::uint64_t kMostCells = std::numeric_limits<std::int32_t>::max();

// Where everything lies in the cache's one block.
struct Places {
  std::int32_t* lengths;
  unsigned char* keys;
  unsigned char* values;
  float* key_scales;
  float* value_scales;
  std::uint64_t bytes;

  Places(const KeyValueCacheConfig& c, void* block) {
    Carver carver(block);
    const std::uint64_t rows = CheckedMul(CheckedMul(Size(c.batch), Size(c.kv_heads)), Size(c.capacity));
    const std::uint64_t cell = CellBytes(c.cell_type);
    const std::uint64_t scales = c.cell_type == CellType::kInt8 ? rows : 0;
    lengths = carver.Take<std::int32_t>(Size(c.batch));
    keys = carver.Take<unsigned char>(CheckedMul(CheckedMul(rows, Size(c.head_dim)), cell));
    values = carver.Take<unsigned char>(CheckedMul(CheckedMul(rows, Size(c.value_dim)), cell));
    key_scales = carver.Take<float>(scales);
    value_scales = carver.Take<float>(scales);
    bytes = carver.used();
    // The kernels' strides are of 32 bits.
    const std::uint64_t widest = static_cast<std::uint64_t>(std::max({c.head_dim, c.value_dim, 1}));
    if (CheckedMul(CheckedMul(Size(c.kv_heads), Size(c.capacity)), widest) > kMostCells) bytes = kTooLarge;
  }

 private:
  static std::uint64_t Size(std::int32_t size) { return static_cast<std::uint64_t>(size); }
};

Status CheckConfig(const KeyValueCacheConfig& c) {
  if (c.batch < 0) return Status::InvalidShape("batch");
  if (c.kv_heads < 0) return Status::InvalidShape("kv_heads");
  if (c.head_dim < 0) return Status::InvalidShape("head_dim");
  if (c.value_dim < 0) return Status::InvalidShape("value_dim");
  if (c.capacity < 0) return Status::InvalidShape("capacity");
  if (c.window < 0) return Status::InvalidValue("window");
  if (c.sink_tokens < 0 || (c.sink_tokens > 0 && c.window == 0)) return Status::InvalidValue("sink_tokens");
  if (c.window > 0 && c.capacity - c.sink_tokens < c.window) return Status::InvalidShape("capacity");
  if (c.rope_dim != 0 && (c.rope_dim < 2 || c.rope_dim % 2 != 0 || c.rope_dim > c.head_dim)) {
    return Status::InvalidShape("rope_dim");
  }
  return Status::Ok();
}

// Copies one head's rows of one batch row.
struct CopyJob {
  const KeyValueCacheConfig* config;
  const std::int32_t* rows;
  const std::int32_t* lengths;  // of the target
  Places from, to;
};

void CopyHead(void* context, std::int64_t index, int /*thread*/) {
  const auto& job = *static_cast<const CopyJob*>(context);
  const KeyValueCacheConfig& c = *job.config;
  const std::int64_t b = index / c.kv_heads;
  const std::int64_t source_row = job.rows == nullptr ? b : job.rows[b];
  const std::int64_t first = index * c.capacity;
  const std::int64_t source = (source_row * c.kv_heads + index % c.kv_heads) * c.capacity;
  const auto used = static_cast<std::size_t>(std::min(job.lengths[b], c.capacity));
  const std::size_t cell = CellBytes(c.cell_type);
  const std::size_t key = static_cast<std::size_t>(c.head_dim) * cell;
  const std::size_t value = static_cast<std::size_t>(c.value_dim) * cell;
  const auto at = [](std::int64_t row, std::size_t bytes) { return static_cast<std::size_t>(row) * bytes; };
  std::memcpy(job.to.keys + at(first, key), job.from.keys + at(source, key), used * key);
  std::memcpy(job.to.values + at(first, value), job.from.values + at(source, value), used * value);
  if (c.cell_type != CellType::kInt8) return;
  std::memcpy(job.to.key_scales + first, job.from.key_scales + source, used * sizeof(float));
  std::memcpy(job.to.value_scales + first, job.from.value_scales + source, used * sizeof(float));
}

}  // namespace

KeyValueCache::~KeyValueCache() { FreeAligned(memory_); }

std::uint64_t KeyValueCache::Bytes(const KeyValueCacheConfig& config) { return Places(config, nullptr).bytes; }

Status KeyValueCache::Init(const KeyValueCacheConfig& config) {
  if (const Status status = CheckConfig(config); !status.ok()) return status;
  const std::uint64_t bytes = Bytes(config);
  void* const memory = AllocateAligned(bytes);
  if (memory == nullptr) return Status::OutOfMemory(bytes);
  FreeAligned(memory_);
  memory_ = memory;
  config_ = config;
  const Places places(config, memory);
  lengths_ = places.lengths;
  keys_ = places.keys;
  values_ = places.values;
  key_scales_ = places.key_scales;
  value_scales_ = places.value_scales;
  std::fill_n(lengths_, config.batch, 0);
  return Status::Ok();
}

Status KeyValueCache::InitFrom(const KeyValueCache& from, const std::int32_t* rows, std::int32_t count,
                               ThreadPool& pool) {
  KeyValueCacheConfig config = from.config_;
  if (rows != nullptr) config.batch = count;
  for (std::int32_t b = 0; rows != nullptr && b < count; ++b) {
    if (rows[b] < 0 || rows[b] >= from.config_.batch) return Status::InvalidValue("rows");
  }
  if (const Status status = Init(config); !status.ok()) return status;
  for (std::int32_t b = 0; b < config.batch; ++b) lengths_[b] = from.lengths_[rows == nullptr ? b : rows[b]];
  CopyJob job{&config_, rows, lengths_, Places(from.config_, from.memory_), Places(config_, memory_)};
  pool.Run(0, std::int64_t{config.batch} * config.kv_heads, CopyHead, &job);
  return Status::Ok();
}

Status KeyValueCache::Trim(const std::int32_t* lengths) {
  if (busy_) return Status::InvalidValue("cache");
  for (std::int32_t b = 0; b < config_.batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > lengths_[b]) return Status::InvalidValue("length");
    // A ring that has come round has overwritten what the shorter text's window would want.
    const bool wrapped = config_.window > 0 && lengths_[b] > config_.capacity;
    if (wrapped && lengths[b] != lengths_[b] && lengths[b] != 0) return Status::InvalidValue("length");
  }
  std::copy_n(lengths, config_.batch, lengths_);
  return Status::Ok();
}

}  // namespace headwise
