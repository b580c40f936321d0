// Parallel layer: the serial twin of thread_pool.cc, for builds without threads. The same signature, one thread.
#include "headwise/thread_pool.h"
#include "parallel/deadline.h"
#include "parallel/scratch.h"

namespace headwise {

struct ThreadPool::State {
  ScratchSet scratch;
  std::uint64_t job_ids = 0;
};

ThreadPool::ThreadPool(int) : state_(std::make_unique<State>()) {}
ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return 1; }

std::int64_t ThreadPool::Run(std::int64_t first, std::int64_t count, TaskFunction task, void* context, double budget_ms,
                             bool /*alone*/) {
  const Deadline deadline(budget_ms);
  std::int64_t index = first;
  while (index < count) {
    task(context, index, 0);
    ++index;
    if (deadline.Passed()) break;
  }
  return index;
}

Status ThreadPool::ReserveScratch(std::uint64_t bytes) { return state_->scratch.Reserve(bytes, 1); }
void* ThreadPool::Scratch(int thread, std::uint64_t job) const { return state_->scratch.Of(thread, job); }
std::uint64_t ThreadPool::scratch_bytes() const { return state_->scratch.total_bytes(); }
void ThreadPool::ReleaseScratch() { state_->scratch.Release(); }
std::uint64_t ThreadPool::NextJobId() { return ++state_->job_ids; }

}  // namespace headwise
