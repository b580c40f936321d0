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

std::uint64_t SharedFloats(const AttentionArgs& args, const AttentionPlan& plan) {
  return CheckedAdd(PartialFloats(plan, std::int64_t{args.batch} * args.kv_heads), AdditiveFloats(args));
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
          CheckedMul(SharedFloats(args, plan), sizeof(float))};
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
    auto* additive = static_cast<float*>(call.shared);
    const std::uint64_t count = AdditiveFloats(args);
    for (std::uint64_t i = 0; i < count; ++i) additive[i] = args.additive_weights[i] * args.scale;
    call.additive = count > 0 ? additive : nullptr;
    call.partials = additive + count;
  }

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
