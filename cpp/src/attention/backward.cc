// Attention driver: prepares a backward call (check, plan, allocate) and turns it into phases of tasks.
#include <algorithm>
#include <new>

#include "attention/backward_call.h"
#include "memory/aligned.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

AttentionBackwardPlan PlanOf(const AttentionArgs& a) {
  const kernels::KernelTable& table = kernels::Kernels();
  return PlanAttentionBackward({a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.head_dim, a.value_dim},
                               {table.panel, table.row_tile, table.lanes});
}

BiasSums BiasModeOf(const AttentionBackwardArgs& args) {
  if (args.d_bias == nullptr) return BiasSums::kNone;
  const BroadcastStrides& s = args.attention.bias_strides;
  if (s.column == 0) return BiasSums::kOfRows;
  return s.row == 0 ? BiasSums::kOfColumns : BiasSums::kInPlace;
}

// The phases of tile tasks: `rounds` of as many as there are chunks. What a bias in place shares over batches or
// key/value heads is added to by one of them after the other.
struct Rounds {
  std::int32_t batches, kv_heads;
  Rounds(const AttentionBackwardArgs& args, BiasSums mode)
      : batches(mode == BiasSums::kInPlace && args.attention.bias_strides.batch == 0 ? args.attention.batch : 1),
        kv_heads(mode == BiasSums::kInPlace && args.attention.bias_strides.head == 0 ? args.attention.kv_heads : 1) {}
  std::int64_t count() const { return std::int64_t{batches} * kv_heads; }
};

// What all tasks share, in one block.
struct Shared {
  AttentionBackwardPhase* phases;
  float* shift;
  float* delta;
  float* factor;
  float* sink_weights;
  float* bias_sums;
  std::uint64_t sums;  // in bias_sums
  std::uint64_t bytes;

  Shared(const AttentionBackwardArgs& args, const AttentionBackwardPlan& plan, BiasSums mode, void* block) {
    const AttentionArgs& a = args.attention;
    const std::uint64_t heads = CheckedMul(static_cast<std::uint64_t>(a.batch), static_cast<std::uint64_t>(a.heads));
    const std::uint64_t rows = BackwardRows(a).count;
    sums = 0;
    if (mode == BiasSums::kOfRows) sums = rows;
    if (mode == BiasSums::kOfColumns) sums = CheckedMul(heads, static_cast<std::uint64_t>(a.keys));
    Carver carver(block);
    phases = carver.Take<AttentionBackwardPhase>(
        CheckedMul(static_cast<std::uint64_t>(Rounds(args, mode).count()), static_cast<std::uint64_t>(plan.phases())));
    shift = carver.Take<float>(rows);
    delta = carver.Take<float>(rows);
    factor = carver.Take<float>(rows);
    sink_weights = carver.Take<float>(args.d_sinks == nullptr ? 0 : rows);
    bias_sums = carver.Take<float>(sums);
    bytes = carver.used();
  }
};

// The call for the rows' maxima and sums: the scores' alone.
AttentionArgs SumsArgs(const AttentionArgs& a) {
  AttentionArgs sums = a;
  sums.value_dim = 0;
  sums.dropout_rate = 0.0F;
  sums.log_sum_exp = nullptr;
  return sums;
}

AttentionPlan SumsPlanOf(const AttentionArgs& a) {
  const kernels::KernelTable& table = kernels::Kernels();
  return PlanRowSums({a.batch, a.heads, a.kv_heads, a.queries, a.keys, a.head_dim, 0},
                     {table.panel, table.row_tile, table.lanes});
}

// Whether every gradient is 0: nobody sees a key, or the output has no number that could change.
bool NothingToCompute(const AttentionArgs& a) { return a.queries == 0 || a.keys == 0 || a.value_dim == 0; }

AttentionMemory MemoryOf(const AttentionBackwardArgs& args, const AttentionBackwardPlan& plan) {
  const AttentionArgs& a = args.attention;
  if (NothingToCompute(a)) return {};
  const std::uint64_t tiles =
      AttentionBackwardScratch(plan, a.head_dim, a.value_dim, kernels::Kernels().panel, nullptr).bytes;
  const std::uint64_t sums = AttentionScratch(SumsPlanOf(a), a.head_dim, kernels::Kernels().lanes, nullptr).bytes;
  return {std::max(tiles, sums), Shared(args, plan, BiasModeOf(args), nullptr).bytes};
}

std::int64_t BiasElements(const AttentionArgs& a) {
  const BroadcastStrides& s = a.bias_strides;
  return std::int64_t{BiasExtent(s.batch, a.batch)} * BiasExtent(s.head, a.heads) * BiasExtent(s.row, a.queries) *
         BiasExtent(s.column, a.keys);
}

}  // namespace

BackwardRows::BackwardRows(const AttentionArgs& a) : batch(std::int64_t{a.heads} * a.queries), head(a.queries) {
  count = CheckedMul(CheckedMul(static_cast<std::uint64_t>(a.batch), static_cast<std::uint64_t>(a.heads)),
                     static_cast<std::uint64_t>(a.queries));
  if (a.q_starts == nullptr) return;
  batch = 0;
  head = 0;
  for (std::int32_t b = 0; b < a.batch; ++b) {
    head = std::max(head, std::int64_t{a.q_starts[b]} + a.q_lengths[b]);
  }
  count = CheckedMul(static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(a.heads));
}

Status CheckAttentionBackward(const AttentionBackwardArgs& args) {
  const AttentionArgs& a = args.attention;
  if (Status status = CheckAttention(a); !status.ok()) return status;
  if (a.score_kind != ScoreKind::kDot) return Status::InvalidValue("score_kind");
  if (a.weights != nullptr) return Status::InvalidValue("weights");
  if (a.cell_type != CellType::kFloat32) return Status::InvalidValue("cell_type");
  if (a.ring_size != 0) return Status::InvalidValue("ring_size");
  if (a.score_stage != ScoreStage::kNone) return Status::InvalidValue("score_stage");
  const bool rows = a.batch > 0 && a.heads > 0 && a.queries > 0;
  if (rows && a.log_sum_exp == nullptr) return Status::InvalidValue("log_sum_exp");
  if (rows && a.value_dim > 0 && (a.out == nullptr || args.d_out == nullptr)) return Status::InvalidValue("d_out");
  if (rows && a.head_dim > 0 && args.dq == nullptr) return Status::InvalidValue("dq");
  const bool keys = a.batch > 0 && a.kv_heads > 0 && a.keys > 0;
  if (keys && a.head_dim > 0 && args.dk == nullptr) return Status::InvalidValue("dk");
  if (keys && a.value_dim > 0 && args.dv == nullptr) return Status::InvalidValue("dv");
  if (args.d_bias != nullptr && a.bias == nullptr) return Status::InvalidValue("d_bias");
  if (args.d_sinks != nullptr && a.sinks == nullptr) return Status::InvalidValue("d_sinks");
  return Status::Ok();
}

AttentionMemory AttentionBackwardWorkingMemory(const AttentionBackwardArgs& args) {
  return MemoryOf(args, PlanOf(args.attention));
}

struct AttentionBackward::Call : AttentionBackwardCall {
  void* shared = nullptr;
  GradientZeros all_zeros[3];  // where nothing is to be computed: dq, dk, dv

  Status AddZeros(Job& job);
};

AttentionBackward::~AttentionBackward() {
  if (call_ == nullptr) return;
  FreeAligned(call_->shared);
  FreeAligned(call_);
}

Status AttentionBackward::Call::AddZeros(Job& job) {
  const AttentionArgs& a = attention();
  all_zeros[0] = {args.dq, a.q_strides, a.q_starts, a.q_lengths, a.heads, a.queries, a.head_dim};
  all_zeros[1] = {args.dk, a.k_strides, a.k_starts, a.kv_lengths, a.kv_heads, a.keys, a.head_dim};
  all_zeros[2] = {args.dv, a.v_strides, a.k_starts, a.kv_lengths, a.kv_heads, a.keys, a.value_dim};
  for (GradientZeros& rows : all_zeros) {
    const std::int64_t tasks = std::int64_t{a.batch} * rows.heads * rows.TasksOfHead();
    if (Status status = job.AddPhase(tasks, &GradientZerosTask, &rows); !status.ok()) return status;
  }
  if (args.d_sinks != nullptr) std::fill_n(args.d_sinks, a.heads, 0.0F);
  zeros = args.d_bias;
  zero_count = args.d_bias == nullptr ? 0 : BiasElements(a);
  return job.AddPhase(ZeroTasks(zero_count), &BackwardStartTask, static_cast<AttentionBackwardCall*>(this));
}

Status AttentionBackward::Prepare(const AttentionBackwardArgs& args, ThreadPool& pool, Job& job) {
  if (Status status = CheckAttentionBackward(args); !status.ok()) return status;
  const AttentionArgs& a = args.attention;
  const AttentionBackwardPlan plan = PlanOf(a);
  const AttentionMemory memory = MemoryOf(args, plan);
  if (Status status = pool.ReserveScratch(memory.per_thread); !status.ok()) return status;

  void* place = AllocateAligned(sizeof(Call));
  if (place == nullptr) return Status::OutOfMemory(sizeof(Call));
  call_ = new (place) Call{};
  Call& call = *call_;
  call.args = args;
  if (NothingToCompute(a)) return call.AddZeros(job);
  call.shared = AllocateAligned(memory.shared);
  if (call.shared == nullptr && memory.shared > 0) return Status::OutOfMemory(memory.shared);
  call.plan = plan;
  call.bias_mode = BiasModeOf(args);
  const Shared shared(args, plan, call.bias_mode, call.shared);
  call.row_strides = BackwardRows(a);
  call.shift = shared.shift;
  call.delta = shared.delta;
  call.factor = shared.factor;
  call.sink_weights = shared.sink_weights;
  call.bias_sums = shared.bias_sums;
  const bool in_place = call.bias_mode == BiasSums::kInPlace;
  call.zeros = in_place ? args.d_bias : call.bias_sums;
  call.zero_count = in_place ? BiasElements(a) : static_cast<std::int64_t>(shared.sums);

  StartCall(a, pool, &call.forward);
  StartCall(SumsArgs(a), pool, &call.sums);
  call.sums.plan = SumsPlanOf(a);

  AttentionBackwardCall* context = &call;
  if (Status status = job.AddPhase(ZeroTasks(call.zero_count), &BackwardStartTask, context); !status.ok()) {
    return status;
  }
  const std::int64_t heads = std::int64_t{a.batch} * a.heads;
  const std::int64_t row_tasks = (std::int64_t{a.queries} + plan.delta_rows - 1) / plan.delta_rows;
  if (Status status = job.AddPhase(heads * row_tasks, &BackwardRowsTask, context); !status.ok()) return status;
  if (Status status = job.AddPhase(call.sums.plan.tasks, &BackwardSumsTask, context); !status.ok()) return status;
  const Rounds rounds(args, call.bias_mode);
  AttentionBackwardPhase* phase = shared.phases;
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const auto b = static_cast<std::int32_t>(round / rounds.kv_heads);
    const auto g = static_cast<std::int32_t>(round % rounds.kv_heads);
    for (std::int32_t rotation = 0; rotation < plan.phases(); ++rotation, ++phase) {
      *phase = {context, rotation, b, rounds.batches == 1 ? a.batch : 1, g, rounds.kv_heads == 1 ? a.kv_heads : 1};
      const std::int64_t tasks = std::int64_t{phase->batches} * phase->kv_heads * plan.tasks();
      if (Status status = job.AddPhase(tasks, &BackwardTileTask, phase); !status.ok()) return status;
    }
  }
  if (args.d_sinks != nullptr) {
    if (Status status = job.AddPhase(a.heads, &BackwardSinksTask, context); !status.ok()) return status;
  }
  const bool joined = call.bias_mode == BiasSums::kOfRows || call.bias_mode == BiasSums::kOfColumns;
  return job.AddPhase(joined ? 1 : 0, &BackwardBiasTask, context);
}

Status RunAttentionBackward(const AttentionBackwardArgs& args, ThreadPool& pool) {
  AttentionBackward backward;
  return RunJob(pool, [&](Job& job) { return backward.Prepare(args, pool, job); });
}

}  // namespace headwise
