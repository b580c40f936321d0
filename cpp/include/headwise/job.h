// Public: one call's work as a short sequence of phases of independent tasks, so that it can be run in slices, stopped
// between them, and divided over any number of threads without changing a bit of the result.
#pragma once

#include <cstdint>
#include <limits>

#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

class Job {
 public:
  Job() = default;
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Phases run in the order in which they are added; `context` outlives the job. A phase of no tasks is none. `flops` are the
  // floating-point operations of all its tasks together: where they are few, the caller's thread runs the phase alone,
  // because waking others would take longer.
  Status AddPhase(std::int64_t tasks, TaskFunction task, void* context, double flops = kMuchWork);

  // Runs until done (true) or until about `budget_ms` milliseconds have passed (false; call again to go on).
  bool Run(ThreadPool& pool, double budget_ms = kNoBudget);

 private:
  static constexpr double kMuchWork = std::numeric_limits<double>::infinity();
  struct Phase {
    std::int64_t tasks;
    TaskFunction task;
    void* context;
    bool alone;
  };
  static constexpr int kInlinePhases = 8;  // as many as most calls have, so that they allocate nothing
  Phase inline_phases_[kInlinePhases];
  Phase* phases_ = inline_phases_;
  int phase_count_ = 0;
  int capacity_ = kInlinePhases;
  int phase_ = 0;
  std::int64_t next_task_ = 0;
};

}  // namespace headwise
