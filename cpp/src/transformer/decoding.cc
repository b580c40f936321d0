// Transformer: a target read a few tokens at a time. Start reading at TransformerDecodeStep::Prepare.
#include <algorithm>
#include <new>

#include "graph/graph.h"
#include "headwise/transformer_decoding.h"
#include "memory/aligned.h"
#include "memory/carver.h"
#include "transformer/build.h"

namespace headwise {
namespace {

void DestroyCaches(KeyValueCache* caches, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) caches[i].~KeyValueCache();
  FreeAligned(caches);
}

// `init` fills each; all or none.
template <class Init>
Status MakeCaches(std::int32_t count, KeyValueCache** made, Init&& init) {
  const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(count), sizeof(KeyValueCache));
  auto* caches = static_cast<KeyValueCache*>(AllocateAligned(bytes));
  if (caches == nullptr) return Status::OutOfMemory(bytes);
  for (std::int32_t i = 0; i < count; ++i) new (caches + i) KeyValueCache;
  for (std::int32_t i = 0; i < count; ++i) {
    if (Status status = init(caches[i], i); !status.ok()) {
      DestroyCaches(caches, count);
      return status;
    }
  }
  *made = caches;
  return Status::Ok();
}

}  // namespace

TransformerDecoding::~TransformerDecoding() {
  DestroyCaches(caches_, layers_);
  FreeAligned(memory_);
}

Status TransformerDecoding::Init(const Transformer& model, std::int32_t rows, std::int32_t capacity) {
  const TransformerConfig& c = model.config();
  if (c.kind == TransformerKind::kEncoder) return Status::InvalidValue("kind");
  if (caches_ != nullptr) return Status::InvalidValue("decoding");
  if (rows < 1) return Status::InvalidShape("rows");
  if (capacity < 1 || capacity > c.most_positions) return Status::InvalidShape("capacity");
  KeyValueCacheConfig config;
  config.batch = rows;
  config.kv_heads = c.kv_heads;
  config.head_dim = c.embed_dim / c.heads;
  config.value_dim = config.head_dim;
  config.capacity = capacity;
  if (c.position == PositionKind::kRotary) config.rope = c.rope;
  const auto init = [&config](KeyValueCache& cache, std::int32_t /*layer*/) { return cache.Init(config); };
  if (Status status = MakeCaches(c.decoder_layers, &caches_, init); !status.ok()) return status;
  layers_ = c.decoder_layers;
  rows_ = rows;
  capacity_ = capacity;
  kv_heads_ = config.kv_heads;
  kv_width_ = config.kv_heads * config.head_dim;
  cross_ = c.kind == TransformerKind::kEncoderDecoder;
  return Status::Ok();
}

Status TransformerDecoding::Select(const std::int32_t* rows, std::int32_t count, ThreadPool& pool) {
  if (count < 1) return Status::InvalidShape("rows");
  bool same = count == rows_;
  for (std::int32_t b = 0; b < count; ++b) {
    if (rows[b] < 0 || rows[b] >= rows_) return Status::InvalidValue("rows");
    same = same && rows[b] == b;
  }
  if (same) return Status::Ok();
  KeyValueCache* selected = nullptr;
  Status status = MakeCaches(layers_, &selected, [&](KeyValueCache& cache, std::int32_t layer) {
    return cache.InitFrom(caches_[layer], rows, count, pool);
  });
  if (!status.ok()) return status;
  DestroyCaches(caches_, layers_);
  caches_ = selected;
  rows_ = count;
  return Status::Ok();
}

bool TransformerDecoding::Fits(const TransformerConfig& c) const {
  return caches_ != nullptr && layers_ == c.decoder_layers && kv_heads_ == c.kv_heads &&
         kv_width_ == c.embed_dim / c.heads * c.kv_heads && capacity_ <= c.most_positions &&
         cross_ == (c.kind == TransformerKind::kEncoderDecoder);
}

// Room for a source; what was read before is forgotten.
Status TransformerDecoding::ReadSource(std::int32_t length, const std::uint8_t* mask) {
  source_read_ = false;
  FreeAligned(memory_);
  const auto s = static_cast<std::uint64_t>(length);
  const auto layers = static_cast<std::uint64_t>(layers_);
  const auto walk = [&](void* block) {
    Carver carver(block);
    memory_ = carver.Take<float>(CheckedMul(CheckedMul(2 * layers, s), static_cast<std::uint64_t>(kv_width_)));
    source_mask_ = mask == nullptr ? nullptr : carver.Take<std::uint8_t>(s);
    return carver.used();
  };
  const std::uint64_t bytes = walk(nullptr);
  void* const block = AllocateAligned(bytes);
  if (block == nullptr) {
    memory_ = nullptr;
    return Status::OutOfMemory(bytes);
  }
  walk(block);
  source_length_ = length;
  if (mask != nullptr) std::copy_n(mask, length, source_mask_);
  return Status::Ok();
}

struct TransformerDecodeStep::Call {
  Call(const TransformerDecodeArgs& arguments, ThreadPool& pool)
      : args(arguments), graph(pool, false, SeedOf(arguments.model->config()), 0) {}

  Status Prepare(Job& job);
  Status Begin(std::int32_t length);
  static void Finish(void* context, std::int64_t index, int thread);

  TransformerDecodeArgs args;
  TransformerBatch source, target;
  Graph graph;
  Value* logits = nullptr;
};

Status TransformerDecodeStep::Call::Prepare(Job& job) {
  const Transformer& model = *args.model;
  TransformerDecoding& decoding = *args.decoding;
  const TransformerConfig& c = model.config();
  const bool reads = args.source_length > 0;
  target.batch = decoding.rows_;
  target.target_length = args.target_length;
  target.target = args.target;
  if (Status status = CheckTarget(c, target); !status.ok()) return status;
  if (reads != (decoding.cross_ && (reads || !decoding.source_read_))) return Status::InvalidValue("source");
  if ((reads ? 0 : decoding.length_) > decoding.capacity_ - args.target_length) return Status::InvalidShape("target");
  if (reads) {
    source.batch = 1;
    source.source_length = args.source_length;
    source.source = args.source;
    source.source_vectors = args.source_vectors;
    source.source_mask = args.source_mask;
    if (Status status = CheckSource(c, source); !status.ok()) return status;
  }
  if (Status status = Begin(reads ? 0 : decoding.length_); !status.ok()) return status;
  if (reads) {
    if (Status status = decoding.ReadSource(args.source_length, args.source_mask); !status.ok()) return status;
    TransformerBuild encoder(model, source, nullptr, graph);
    encoder.ReadMemory(encoder.Memory(), decoding);
  }
  logits = TransformerBuild(model, target, nullptr, graph).NextLogits(decoding);
  if (Status status = graph.Forward(job); !status.ok()) return status;
  return job.AddPhase(1, &Finish, this);
}

// All rows are of this length: a step that was given up may have got through some layers.
Status TransformerDecodeStep::Call::Begin(std::int32_t length) {
  TransformerDecoding& decoding = *args.decoding;
  const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(decoding.rows_), sizeof(std::int32_t));
  auto* lengths = static_cast<std::int32_t*>(AllocateAligned(bytes));
  if (lengths == nullptr) return Status::OutOfMemory(bytes);
  std::fill_n(lengths, decoding.rows_, length);
  Status status;
  for (std::int32_t layer = 0; layer < decoding.layers_ && status.ok(); ++layer) {
    status = decoding.caches_[layer].Trim(lengths);
  }
  FreeAligned(lengths);
  if (status.ok()) decoding.length_ = length;
  return status;
}

void TransformerDecodeStep::Call::Finish(void* context, std::int64_t /*index*/, int /*thread*/) {
  auto& call = *static_cast<Call*>(context);
  std::copy_n(call.logits->data, call.logits->count(), call.args.logits);
  TransformerDecoding& decoding = *call.args.decoding;
  decoding.length_ += call.args.target_length;
  decoding.source_read_ = decoding.cross_;
}

TransformerDecodeStep::~TransformerDecodeStep() { delete call_; }

Status TransformerDecodeStep::Prepare(const TransformerDecodeArgs& args, ThreadPool& pool, Job& job) {
  if (call_ != nullptr || !args.decoding->Fits(args.model->config())) return Status::InvalidValue("decoding");
  call_ = new (std::nothrow) Call(args, pool);
  return call_ == nullptr ? Status::OutOfMemory(sizeof(Call)) : call_->Prepare(job);
}

}  // namespace headwise
