// Attention driver: prepares a call (check, plan, allocate) and turns it into phases of tasks.
#include <algorithm>
#include <cmath>
#include <new>

#include "attention/call.h"
#include "attention/finish_row.h"
#include "attention/tasks.h"
#include "headwise/attention.h"
#include "memory/aligned.h"
#include "parallel/run_job.h"

namespace headwise {
namespace {

AttentionPlan PlanOf(const AttentionArgs& args) {
  const kernels::KernelTable& table = kernels::Kernels();
  AttentionPlan plan =
      PlanAttention({args.batch, args.heads, args.kv_heads, args.queries, args.keys, args.head_dim, args.value_dim},
                    {table.panel, table.row_tile, table.lanes});
  if (args.cell_type != CellType::kFloat32) plan.wide_dim = std::max(args.head_dim, args.value_dim);
  return plan;
}

std::uint64_t AdditiveFloats(const AttentionArgs& args) {
  return args.score_kind == ScoreKind::kAdditive
             ? CheckedMul(static_cast<std::uint64_t>(args.heads), static_cast<std::uint64_t>(args.head_dim))
             : 0;
}

std::int64_t RoundTasks(const AttentionPlan& plan) { return std::min<std::int64_t>(plan.round_tasks, plan.tasks); }
std::int64_t Rounds(const AttentionPlan& plan) {
  return plan.tasks == 0 ? 0 : (plan.tasks + RoundTasks(plan) - 1) / RoundTasks(plan);
}

// What all tasks share, in one block.
struct Shared {
  float* additive;  // [H,D], with additive scores
  float* partials;
  std::byte* states;
  ChunkPhase* phases;
  std::uint64_t bytes;

  Shared(const AttentionArgs& args, const AttentionPlan& plan, void* block) {
    const bool chunked = !plan.direct && plan.chunks > 1;
    Carver carver(block);
    additive = carver.Take<float>(AdditiveFloats(args));
    partials = carver.Take<float>(PartialFloats(plan, std::int64_t{args.batch} * args.kv_heads));
    const std::uint64_t kept = StateBytes(plan, kernels::Kernels().lanes);
    states = carver.Take<std::byte>(chunked ? CheckedMul(static_cast<std::uint64_t>(RoundTasks(plan)), kept) : 0);
    phases = carver.Take<ChunkPhase>(
        chunked ? CheckedMul(static_cast<std::uint64_t>(Rounds(plan)), static_cast<std::uint64_t>(plan.chunks)) : 0);
    bytes = carver.used();
  }
};

// The phases of a head in chunks: round by round, chunk by chunk.
Status AddChunkPhases(const AttentionCall& call, ChunkPhase* phase, Job& job) {
  for (std::int64_t round = 0; round < Rounds(call.plan); ++round) {
    const std::int64_t first = round * RoundTasks(call.plan);
    for (std::int32_t chunk = 0; chunk < call.plan.chunks; ++chunk, ++phase) {
      *phase = {&call, first, chunk};
      const std::int64_t tasks = std::min(RoundTasks(call.plan), call.plan.tasks - first);
      if (Status status = job.AddPhase(tasks, &ChunkTask, phase); !status.ok()) return status;
    }
  }
  return Status::Ok();
}

// So that the weights of a row, dropout's factor included, sum to at most 1/2.
float LiftOf(const AttentionArgs& args) {
  int keys = 0;
  while (keys < 31 && (std::int64_t{1} << keys) < args.keys) ++keys;
  const double kept = args.dropout_rate < 1.0F ? 1.0 - static_cast<double>(args.dropout_rate) : 1.0;
  return static_cast<float>(keys + 1 - std::floor(std::log2(kept)));
}

// Only masks between product and softmax: then log2(e) is folded into the queries once, instead of into every score.
bool OnlyMasks(const AttentionArgs& args) {
  return args.softcap == 0.0F && args.bias == nullptr && args.alibi_slopes == nullptr &&
         args.score_kind == ScoreKind::kDot;
}

AttentionMemory MemoryOf(const AttentionArgs& args, const AttentionPlan& plan) {
  return {AttentionScratch(plan, args.head_dim, kernels::Kernels().lanes, nullptr).bytes,
          Shared(args, plan, nullptr).bytes};
}

}  // namespace

void StartCall(const AttentionArgs& args, ThreadPool& pool, AttentionCall* call) {
  call->args = args;
  call->kernels = &kernels::Kernels();
  call->pool = &pool;
  call->job = pool.NextJobId();
  call->only_masks = OnlyMasks(args);
  call->lift = LiftOf(args);
  call->unlift = std::exp2(static_cast<double>(call->lift));
}

// Whether every output row is 0, whatever the inputs, and nothing but rows and log-sum-exps is to be written.
bool NothingToCompute(const AttentionArgs& args) {
  return args.keys == 0 || (args.value_dim == 0 && args.log_sum_exp == nullptr && args.weights == nullptr &&
                            args.score_stage == ScoreStage::kNone);
}

// Rows of all batch entries and heads, one after another.
std::int64_t FillTasks(const AttentionArgs& args) {
  const std::int64_t rows = std::int64_t{args.batch} * args.heads * args.queries;
  if (args.value_dim == 0 && args.log_sum_exp == nullptr) return 0;
  return (rows + RowsToFill(args.value_dim) - 1) / RowsToFill(args.value_dim);
}

void FillTask(void* context, std::int64_t index, int /*thread*/) {
  const AttentionCall& call = *static_cast<const AttentionCall*>(context);
  const AttentionArgs& args = call.args;
  const std::int64_t of_task = RowsToFill(args.value_dim);
  const std::int64_t end = std::min((index + 1) * of_task, std::int64_t{args.batch} * args.heads * args.queries);
  for (std::int64_t row = index * of_task; row < end; ++row) {
    const auto b = static_cast<std::int32_t>(row / args.queries / args.heads);
    const auto h = static_cast<std::int32_t>(row / args.queries % args.heads);
    FinishRow(call, b, h, static_cast<std::int32_t>(row % args.queries), false, 0.0F, 0.0F, nullptr);
  }
}

struct AttentionForward::Call : AttentionCall {
  void* shared = nullptr;
};

AttentionForward::~AttentionForward() {
  if (call_ == nullptr) return;
  FreeAligned(call_->shared);
}

AttentionMemory AttentionWorkingMemory(const AttentionArgs& args) { return MemoryOf(args, PlanOf(args)); }

Status AttentionForward::Prepare(const AttentionArgs& args, ThreadPool& pool, Job& job) {
  if (Status status = CheckAttention(args); !status.ok()) return status;
  const bool nothing = NothingToCompute(args);
  const AttentionPlan plan = PlanOf(args);
  const AttentionMemory memory = nothing ? AttentionMemory{} : MemoryOf(args, plan);
  if (Status status = pool.ReserveScratch(memory.per_thread); !status.ok()) return status;

  static_assert(sizeof(Call) <= kCallBytes && alignof(Call) <= alignof(std::max_align_t));
  call_ = new (place_) Call{};
  Call& call = *call_;
  StartCall(args, pool, &call);
  call.plan = plan;
  if (nothing) return job.AddPhase(FillTasks(args), &FillTask, static_cast<AttentionCall*>(&call));
  if (memory.shared > 0) {
    call.shared = AllocateAligned(memory.shared);
    if (call.shared == nullptr) return Status::OutOfMemory(memory.shared);
  }
  const Shared shared(args, plan, call.shared);
  const std::uint64_t count = AdditiveFloats(args);
  for (std::uint64_t i = 0; i < count; ++i) shared.additive[i] = args.additive_weights[i] * args.scale;
  call.additive = count > 0 ? shared.additive : nullptr;
  call.partials = shared.partials;
  call.states = shared.states;
  if (!plan.direct && plan.chunks > 1) return AddChunkPhases(call, shared.phases, job);

  AttentionCall* context = &call;
  const double rows = double(args.batch) * args.heads * args.queries;
  const TaskFunction task = plan.direct ? &DirectTask : &TiledTask;
  const double operations = 2.0 * rows * args.keys * (double(args.head_dim) + args.value_dim);
  if (Status status = job.AddPhase(plan.tasks, task, context, operations); !status.ok()) return status;
  if (plan.splits == 1) return Status::Ok();
  const double merge = 2.0 * rows * plan.splits * args.value_dim;
  return job.AddPhase(std::int64_t{args.batch} * args.kv_heads, &MergeTask, context, merge);
}

Status Attention(const AttentionArgs& args, ThreadPool& pool) {
  AttentionForward forward;
  return RunJob(pool, [&](Job& job) { return forward.Prepare(args, pool, job); });
}

}  // namespace headwise
