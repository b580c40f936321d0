// Parallel layer: runs a job's phases one after another, within a budget.
#include "headwise/job.h"

#include <algorithm>

#include "memory/aligned.h"
#include "parallel/deadline.h"

namespace headwise {
namespace {

// About 20 microseconds of one thread; another takes 5 to 50 to wake.
constexpr double kFlopsWorthWaking = 4e5;

}  // namespace

Job::~Job() {
  if (phases_ != inline_phases_) FreeAligned(phases_);
}

Status Job::AddPhase(std::int64_t tasks, TaskFunction task, void* context, double flops) {
  if (tasks <= 0) return Status::Ok();
  if (phase_count_ == capacity_) {
    const std::uint64_t bytes = sizeof(Phase) * 2U * static_cast<std::uint64_t>(capacity_);
    auto* grown = static_cast<Phase*>(AllocateAligned(bytes));
    if (grown == nullptr) return Status::OutOfMemory(bytes);
    std::copy(phases_, phases_ + phase_count_, grown);
    if (phases_ != inline_phases_) FreeAligned(phases_);
    phases_ = grown;
    capacity_ *= 2;
  }
  phases_[phase_count_++] = {tasks, task, context, flops < kFlopsWorthWaking};
  return Status::Ok();
}

bool Job::Run(ThreadPool& pool, double budget_ms) {
  const Deadline deadline(budget_ms);
  while (phase_ < phase_count_) {
    const Phase& phase = phases_[phase_];
    next_task_ = pool.Run(next_task_, phase.tasks, phase.task, phase.context, deadline.RemainingMs(), phase.alone);
    if (next_task_ < phase.tasks) return false;
    ++phase_;
    next_task_ = 0;
    if (phase_ < phase_count_ && deadline.Passed()) return false;
  }
  return true;
}

}  // namespace headwise
