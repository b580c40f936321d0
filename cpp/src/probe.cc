// Driver: shares the ceilings' work over the pool, in many small calls of the kernels as all drivers do.
#include "headwise/probe.h"

#include <algorithm>

#include "kernels/probe.h"

namespace headwise {
namespace {

constexpr int kCallsPerTask = 32;
constexpr std::int64_t kRoundsPerCall = 4096;
constexpr std::int64_t kFloatsPerTask = 1 << 18;  // 1 MiB: some hundred tasks in a buffer that is larger than a cache
constexpr std::int64_t kFloatsPerCall = 1 << 13;

// A cache line apart, so that threads that write theirs do not disturb each other.
struct alignas(64) PerThread {
  float sink = 0.0F;
  double operations = 0.0;
};

struct MultiplyAddJob {
  PerThread threads[ThreadPool::kMaxThreads];
};

void MultiplyAddTask(void* context, std::int64_t /*index*/, int thread) {
  PerThread& own = static_cast<MultiplyAddJob*>(context)->threads[thread];
  for (int c = 0; c < kCallsPerTask; ++c) own.operations += kernels::Probes().multiply_add(kRoundsPerCall, &own.sink);
}

struct ReadJob {
  const float* data;
  std::int64_t count;
  PerThread threads[ThreadPool::kMaxThreads];
};

void ReadTask(void* context, std::int64_t index, int thread) {
  auto& job = *static_cast<ReadJob*>(context);
  const std::int64_t end = std::min(job.count, (index + 1) * kFloatsPerTask);
  for (std::int64_t i = index * kFloatsPerTask; i < end; i += kFloatsPerCall) {
    kernels::Probes().read(job.data + i, std::min(kFloatsPerCall, end - i), &job.threads[thread].sink);
  }
}

}  // namespace

Status ProbeMultiplyAdd(std::int64_t tasks, ThreadPool& pool, double* operations) {
  if (tasks < 0) return Status::InvalidValue("tasks");
  MultiplyAddJob job;
  pool.Run(0, tasks, &MultiplyAddTask, &job);
  for (const PerThread& thread : job.threads) *operations += thread.operations;
  return Status::Ok();
}

Status ProbeRead(const float* data, std::int64_t count, ThreadPool& pool) {
  if (count < 0 || count % kernels::kProbeReadBlock != 0) return Status::InvalidShape("count");
  if (data == nullptr && count > 0) return Status::InvalidValue("data");
  ReadJob job{data, count, {}};
  pool.Run(0, (count + kFloatsPerTask - 1) / kFloatsPerTask, &ReadTask, &job);
  return Status::Ok();
}

}  // namespace headwise
