// Public: the threads that share a call's tasks. Two implementations with one signature: parallel/thread_pool.cc
// (std::thread, so Web Workers under Emscripten) and parallel/serial_pool.cc (HEADWISE_THREADS off).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "headwise/status.h"

namespace headwise {

// Runs task `index` on the thread numbered `thread`, 0 ... pool.threads() - 1; the calling thread is number 0.
using TaskFunction = void (*)(void* context, std::int64_t index, int thread);

inline constexpr double kNoBudget = std::numeric_limits<double>::infinity();

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 64;

  // Starts `threads` - 1 threads, clamped to 1 ... kMaxThreads. Idle threads sleep and cost no CPU.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs the tasks first ... count - 1, each exactly once, and returns when every task it began has ended. Tasks are
  // begun in order of their index; none is begun once `budget_ms` milliseconds have passed, but one always is. Returns
  // the index of the first task not run, `count` when all are done. Not to be called from inside a task, nor by two
  // threads at once. `alone`: on the calling thread, waking no other.
  std::int64_t Run(std::int64_t first, std::int64_t count, TaskFunction task, void* context,
                   double budget_ms = kNoBudget, bool alone = false);

  // Working memory of one thread, kept from call to call. Reserve outside tasks (it may allocate, and moves nothing
  // that a running task uses); Scratch inside them, with the job's id. 64-byte aligned. It holds what this job left
  // there; when another job had it in between, its first kScratchHeader bytes are zero and the rest is undefined.
  static constexpr std::uint64_t kScratchHeader = 64;
  Status ReserveScratch(std::uint64_t bytes_per_thread);
  void* Scratch(int thread, std::uint64_t job) const;
  std::uint64_t scratch_bytes() const;
  // Frees the working memory; the next call that needs some allocates it anew. Not while a call is between two slices.
  void ReleaseScratch();

  // A number that no two jobs of this pool share, from 1.
  std::uint64_t NextJobId();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headwise
