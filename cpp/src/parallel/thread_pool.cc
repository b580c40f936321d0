// Parallel layer: the thread pool over pthreads (Web Workers under Emscripten). Threads sleep on a condition variable;
// a run wakes them, all claim tasks from one counter, and the run ends when the last claimed task has ended.
#include "headwise/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "parallel/deadline.h"
#include "parallel/scratch.h"

namespace headwise {

struct ThreadPool::State {
  struct Worker {
    State* state;
    pthread_t handle;
    int number;
  };

  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
  // Guarded by mutex.
  std::uint64_t run = 0;  // counts runs, so that a worker joins each at most once
  bool open = false;      // workers may still join the current run
  bool closing = false;   // the pool ends
  int active = 0;         // workers inside the current run
  // The current run; written before `open`, read by workers inside it.
  std::atomic<std::int64_t> next{0};
  std::int64_t count = 0;
  TaskFunction task = nullptr;
  void* context = nullptr;
  Deadline deadline{kNoBudget};

  int threads = 1;
  Worker workers[kMaxThreads];
  ScratchSet scratch;
  std::uint64_t job_ids = 0;

  void Claim(int thread) {
    bool first = thread == 0;  // the caller always makes progress
    while (first || !deadline.Passed()) {
      first = false;
      // A claim is only made while tasks are left, so that `next` ends as the first task that nobody ran.
      std::int64_t index = next.load(std::memory_order_relaxed);
      do {
        if (index >= count) return;
      } while (!next.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
      task(context, index, thread);
    }
  }

  void Work(int thread) {
    std::uint64_t last_run = 0;
    pthread_mutex_lock(&mutex);
    for (;;) {
      while (!closing && !(open && run != last_run)) pthread_cond_wait(&wake, &mutex);
      if (closing) break;
      last_run = run;
      ++active;
      pthread_mutex_unlock(&mutex);
      Claim(thread);
      pthread_mutex_lock(&mutex);
      if (--active == 0) pthread_cond_signal(&idle);
    }
    pthread_mutex_unlock(&mutex);
  }

  static void* Start(void* worker) {
    auto* self = static_cast<Worker*>(worker);
    self->state->Work(self->number);
    return nullptr;
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  const int wanted = std::clamp(threads, 1, kMaxThreads);
  for (int number = 1; number < wanted; ++number) {
    State::Worker& worker = state_->workers[number];
    worker.state = state_.get();
    worker.number = number;
    // A thread that cannot be had is no error: the pool is smaller, and says so in threads().
    if (pthread_create(&worker.handle, nullptr, &State::Start, &worker) != 0) break;
    state_->threads = number + 1;
  }
}

ThreadPool::~ThreadPool() {
  pthread_mutex_lock(&state_->mutex);
  state_->closing = true;
  pthread_cond_broadcast(&state_->wake);
  pthread_mutex_unlock(&state_->mutex);
  for (int number = 1; number < state_->threads; ++number) pthread_join(state_->workers[number].handle, nullptr);
}

int ThreadPool::threads() const { return state_->threads; }

std::int64_t ThreadPool::Run(std::int64_t first, std::int64_t count, TaskFunction task, void* context, double budget_ms,
                             bool alone) {
  if (first >= count) return count;
  State& s = *state_;
  const bool shared = !alone && s.threads > 1 && count - first > 1;
  if (shared) pthread_mutex_lock(&s.mutex);
  s.next.store(first, std::memory_order_relaxed);
  s.count = count;
  s.task = task;
  s.context = context;
  s.deadline = Deadline(budget_ms);
  if (shared) {
    ++s.run;
    s.open = true;
    pthread_cond_broadcast(&s.wake);
    pthread_mutex_unlock(&s.mutex);
  }
  s.Claim(0);
  if (shared) {
    pthread_mutex_lock(&s.mutex);
    s.open = false;
    while (s.active > 0) pthread_cond_wait(&s.idle, &s.mutex);
    pthread_mutex_unlock(&s.mutex);
  }
  return s.next.load(std::memory_order_relaxed);
}

Status ThreadPool::ReserveScratch(std::uint64_t bytes) { return state_->scratch.Reserve(bytes, state_->threads); }
void* ThreadPool::Scratch(int thread, std::uint64_t job) const { return state_->scratch.Of(thread, job); }
std::uint64_t ThreadPool::scratch_bytes() const { return state_->scratch.total_bytes(); }
void ThreadPool::ReleaseScratch() { state_->scratch.Release(); }
std::uint64_t ThreadPool::NextJobId() { return ++state_->job_ids; }

}  // namespace headwise
