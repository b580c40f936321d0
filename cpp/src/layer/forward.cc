// Layer: one call of the multi-head attention layer, as phases of a job. Start at MultiHeadAttentionForward::Prepare.
//
// The projections lie as [B, L, H, D]: what the products write is what attention reads through strides, so that nothing
// is ever transposed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>

#include "headwise/convolution.h"
#include "headwise/gemm.h"
#include "headwise/multi_head_attention.h"
#include "headwise/rotary.h"
#include "layer/cosine.h"
#include "layer/merge_heads.h"
#include "layer/parameter.h"
#include "layer/projected.h"
#include "memory/aligned.h"
#include "memory/carver.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

bool Missing(const void* data, std::int32_t batch, std::int32_t rows) {
  return data == nullptr && batch > 0 && rows > 0;
}

Status CheckInputs(const MultiHeadAttentionArgs& args) {
  const AttentionArgs& a = args.attention;
  if (a.batch < 0 || a.queries < 0) return Status::InvalidShape("query");
  if (a.keys < 0) return Status::InvalidShape("key");
  if (Missing(args.query, a.batch, a.queries)) return Status::InvalidValue("query");
  if (Missing(args.key, a.batch, a.keys)) return Status::InvalidValue("key");
  if (Missing(args.value, a.batch, a.keys)) return Status::InvalidValue("value");
  if (Missing(args.output, a.batch, a.queries)) return Status::InvalidValue("output");
  return Status::Ok();
}

float ScaleOf(const MultiHeadAttentionConfig& config) {
  return config.score == LayerScore::kScaledDot
             ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)))
             : 1.0F;
}

}  // namespace

struct MultiHeadAttentionForward::Call {
  Call(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& arguments);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Status Allocate();
  Status AddPhases(ThreadPool& pool, Job& job);

 private:
  void Carve(Carver& carver);
  Status AddProjections(Job& job);
  Status AddProjection(const float* x, std::int32_t in, ParameterKind kernel, ParameterKind bias, const Projected& to,
                       PackedConvolutionArgs& product, Job& job) const;
  Status AddRotations(Job& job);
  Status AddNormalizations(Job& job);
  Status AddAttention(ThreadPool& pool, Job& job);
  Status AddOutput(Job& job);
  Status AddWeights(Job& job);

  const LayerParameter* parameter(ParameterKind kind) const { return parameters[static_cast<int>(kind)]; }
  const float* vector(ParameterKind kind) const {
    return parameter(kind) == nullptr ? nullptr : parameter(kind)->values();
  }
  // Weights of all heads in memory of our own: the mean needs them, the caller's buffer lacks some.
  bool OwnWeights() const {
    return args.average_weights != nullptr &&
           (args.attention.weights == nullptr || args.attention.weight_heads != nullptr);
  }

  MultiHeadAttentionConfig config;
  RotaryArrays rope_arrays;
  LayerParameter* parameters[kParameterKinds];
  MultiHeadAttentionArgs args;
  void* memory = nullptr;
  Projected q, k, v, heads;
  float* weights = nullptr;
  // With a rotary embedding, [B]: where query 0 stands, how long the text is.
  std::int32_t* positions = nullptr;
  std::int32_t* lengths = nullptr;

  // What the phases work on.
  PackedConvolutionArgs query_product, key_product, value_product;
  RotaryArgs query_rotation, key_rotation;
  NormalizeArgs query_normalization, key_normalization;
  AttentionForward attention;
  SumHeadsArgs sum;
  GemmArgs output_product;
  ClearPaddingArgs padding;
  AverageWeightsArgs average;
};

MultiHeadAttentionForward::Call::Call(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& arguments)
    : config(layer.config_), rope_arrays(layer.rope_arrays_), args(arguments) {
  for (int i = 0; i < kParameterKinds; ++i) {
    parameters[i] = layer.parameters_[i];
    Retain(parameters[i]);
  }
  const AttentionArgs& a = args.attention;
  q = {a.batch, a.queries, config.heads, config.head_dim};
  k = {a.batch, a.keys, config.kv_heads, config.head_dim};
  v = {a.batch, a.keys, config.kv_heads, config.value_head_dim};
  heads = {a.batch, a.queries, config.heads, config.value_head_dim};
}

MultiHeadAttentionForward::Call::~Call() {
  FreeAligned(memory);
  for (LayerParameter* held : parameters) Release(held);
}

void MultiHeadAttentionForward::Call::Carve(Carver& carver) {
  q.data = carver.Take<float>(q.elements());
  k.data = carver.Take<float>(k.elements());
  v.data = carver.Take<float>(v.elements());
  heads.data = carver.Take<float>(heads.elements());
  if (OwnWeights()) {
    const auto rows = static_cast<std::uint64_t>(q.vectors());
    weights = carver.Take<float>(CheckedMul(rows, static_cast<std::uint64_t>(args.attention.keys)));
  }
  if (config.rope.dim != 0) {
    positions = carver.Take<std::int32_t>(static_cast<std::uint64_t>(args.attention.batch));
    lengths = carver.Take<std::int32_t>(static_cast<std::uint64_t>(args.attention.batch));
  }
}

Status MultiHeadAttentionForward::Call::Allocate() {
  if (!q.Countable() || !heads.Countable()) return Status::InvalidShape("query");
  if (!k.Countable() || !v.Countable()) return Status::InvalidShape("key");
  Carver measure(nullptr);
  Carve(measure);
  memory = AllocateAligned(measure.used());
  if (memory == nullptr) return Status::OutOfMemory(measure.used());
  Carver carver(memory);
  Carve(carver);
  return Status::Ok();
}

Status MultiHeadAttentionForward::Call::AddPhases(ThreadPool& pool, Job& job) {
  if (const Status status = AddProjections(job); !status.ok()) return status;
  if (const Status status = AddRotations(job); !status.ok()) return status;
  if (const Status status = AddNormalizations(job); !status.ok()) return status;
  if (const Status status = AddAttention(pool, job); !status.ok()) return status;
  if (const Status status = AddOutput(job); !status.ok()) return status;
  return AddWeights(job);
}

// A dense projection is a convolution with one tap.
Status MultiHeadAttentionForward::Call::AddProjection(const float* x, std::int32_t in, ParameterKind kernel,
                                                      ParameterKind bias, const Projected& to,
                                                      PackedConvolutionArgs& product, Job& job) const {
  const bool dense = config.projection == ProjectionKind::kDense;
  // Without taps the batch does not matter: one long sequence makes fuller tiles than many short ones.
  product.batch = dense ? 1 : to.batch;
  product.length = dense ? to.batch * to.rows : to.rows;
  product.in = in;
  product.kernel_size = config.kernel_size;
  product.left = ConvolutionLeft(product.kernel_size, config.causal_convolution != 0);
  product.x = x;
  product.kernel = &parameter(kernel)->matrix;
  product.bias = vector(bias);
  product.y = to.data;
  return AddPackedConvolution(product, job);
}

Status MultiHeadAttentionForward::Call::AddProjections(Job& job) {
  Status status = AddProjection(args.query, config.embed_dim, ParameterKind::kQueryKernel, ParameterKind::kQueryBias, q,
                                query_product, job);
  if (!status.ok()) return status;
  status =
      AddProjection(args.key, config.key_dim, ParameterKind::kKeyKernel, ParameterKind::kKeyBias, k, key_product, job);
  if (!status.ok()) return status;
  return AddProjection(args.value, config.value_dim, ParameterKind::kValueKernel, ParameterKind::kValueBias, v,
                       value_product, job);
}

Status MultiHeadAttentionForward::Call::AddRotations(Job& job) {
  if (config.rope.dim == 0) return Status::Ok();
  const AttentionArgs& a = args.attention;
  for (std::int32_t b = 0; b < a.batch; ++b) {
    const std::int64_t kv_length = a.kv_lengths == nullptr ? a.keys : a.kv_lengths[b];
    const std::int64_t q_length = a.q_lengths == nullptr ? a.queries : a.q_lengths[b];
    positions[b] = a.causal_offsets != nullptr ? a.causal_offsets[b] : static_cast<std::int32_t>(kv_length - q_length);
    lengths[b] = static_cast<std::int32_t>(std::max<std::int64_t>(kv_length, positions[b] + q_length));
  }
  for (RotaryArgs* rotation : {&query_rotation, &key_rotation}) {
    const Projected& on = rotation == &query_rotation ? q : k;
    rotation->batch = on.batch;
    rotation->heads = on.heads;
    rotation->rows = on.rows;
    rotation->size = on.size;
    rotation->rope = config.rope;
    rotation->lengths = lengths;
    rotation->x = on.data;
    rotation->y = on.data;
    rotation->x_strides = on.strides();
    rotation->y_strides = on.strides();
  }
  query_rotation.positions = positions;
  if (config.rope.cos != nullptr) {  // which need not reach to the padding
    query_rotation.counts = a.q_lengths;
    key_rotation.counts = a.kv_lengths;
  }
  if (const Status status = AddRotary(query_rotation, job); !status.ok()) return status;
  return AddRotary(key_rotation, job);
}

Status MultiHeadAttentionForward::Call::AddNormalizations(Job& job) {
  if (config.score != LayerScore::kCosine) return Status::Ok();
  query_normalization = {q.vectors(), q.size, q.data};
  key_normalization = {k.vectors(), k.size, k.data};
  if (const Status status = AddNormalize(query_normalization, job); !status.ok()) return status;
  return AddNormalize(key_normalization, job);
}

Status MultiHeadAttentionForward::Call::AddAttention(ThreadPool& pool, Job& job) {
  AttentionArgs a = args.attention;
  a.heads = config.heads;
  a.kv_heads = config.kv_heads;
  a.head_dim = config.head_dim;
  a.value_dim = config.value_head_dim;
  a.q = q.data;
  a.k = k.data;
  a.v = v.data;
  a.out = heads.data;
  a.q_strides = q.strides();
  a.k_strides = k.strides();
  a.v_strides = v.strides();
  a.out_strides = heads.strides();
  a.score_kind = config.score == LayerScore::kAdditive ? ScoreKind::kAdditive : ScoreKind::kDot;
  a.additive_weights = vector(ParameterKind::kScoreKernel);
  a.scale = ScaleOf(config);
  if (OwnWeights()) {
    a.weights = weights;
    a.weight_heads = nullptr;
    a.weight_head_count = config.heads;
  }
  return attention.Prepare(a, pool, job);
}

Status MultiHeadAttentionForward::Call::AddOutput(Job& job) {
  if (config.merge == MergeKind::kSum) {
    sum = {std::int64_t{heads.batch} * heads.rows, heads.heads, heads.size, heads.data};
    if (const Status status = AddSumHeads(sum, job); !status.ok()) return status;
  }
  output_product.m = heads.batch * heads.rows;
  output_product.a = heads.data;
  output_product.a_row_stride = std::int64_t{heads.heads} * heads.size;  // with a sum: head 0, which holds it
  output_product.w = &parameter(ParameterKind::kOutputKernel)->matrix;
  output_product.bias = vector(ParameterKind::kOutputBias);
  output_product.c = args.output;
  output_product.c_row_stride = config.output_dim;
  if (const Status status = AddGemm(output_product, job); !status.ok()) return status;
  if (args.attention.q_lengths == nullptr) return Status::Ok();
  padding = {heads.batch, heads.rows, config.output_dim, args.attention.q_lengths, args.output};
  return AddClearPadding(padding, job);
}

Status MultiHeadAttentionForward::Call::AddWeights(Job& job) {
  if (args.average_weights == nullptr) return Status::Ok();
  const AttentionArgs& a = args.attention;
  average.batch = a.batch;
  average.heads = config.heads;
  average.queries = a.queries;
  average.keys = a.keys;
  average.weights = OwnWeights() ? weights : a.weights;
  average.average = args.average_weights;
  if (OwnWeights() && a.weights != nullptr) {
    if (a.weight_head_count < 0) return Status::InvalidValue("weight_heads");
    for (std::int32_t n = 0; n < a.weight_head_count; ++n) {
      if (a.weight_heads[n] < 0 || a.weight_heads[n] >= config.heads) return Status::InvalidValue("weight_heads");
    }
    average.selected = a.weights;
    average.selection = a.weight_heads;
    average.selection_count = a.weight_head_count;
  }
  return AddAverageWeights(average, job);
}

MultiHeadAttentionForward::~MultiHeadAttentionForward() { delete call_; }

Status MultiHeadAttentionForward::Prepare(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args,
                                          ThreadPool& pool, Job& job) {
  delete call_;
  call_ = nullptr;
  if (layer.Shape(ParameterKind::kQueryKernel).rank == 0) return Status::InvalidValue("layer");
  if (const Status status = CheckInputs(args); !status.ok()) return status;
  auto* const call = new (std::nothrow) Call(layer, args);
  if (call == nullptr) return Status::OutOfMemory(sizeof(Call));
  Status status = call->Allocate();
  if (status.ok()) status = call->AddPhases(pool, job);
  if (status.ok()) {
    call_ = call;
  } else {
    delete call;
  }
  return status;
}

Status Forward(const MultiHeadAttention& layer, const MultiHeadAttentionArgs& args, ThreadPool& pool) {
  MultiHeadAttentionForward forward;
  return RunJob(pool, [&](Job& job) { return forward.Prepare(layer, args, pool, job); });
}

}  // namespace headwise
