// Tests: the pool runs each task once, on the threads that it says, in slices, and again and again.
#include "headwise/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "headwise/job.h"

namespace headwise {
namespace {

struct Counts {
  std::vector<std::atomic<int>> runs;
  std::vector<std::atomic<int>> threads;
  explicit Counts(std::size_t n) : runs(n), threads(ThreadPool::kMaxThreads) {}
  static void Task(void* self, std::int64_t index, int thread) {
    auto* counts = static_cast<Counts*>(self);
    ++counts->runs[static_cast<std::size_t>(index)];
    ++counts->threads[static_cast<std::size_t>(thread)];
  }
};

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (const int n : {0, 1, 2, 3, 100}) {
      for (int again = 0; again < 50; ++again) {
        Counts counts(static_cast<std::size_t>(n));
        EXPECT_EQ(pool.Run(0, n, &Counts::Task, &counts), n);
        for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, ClampsItsSize) {
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-3).threads(), 1);
  EXPECT_LE(ThreadPool(1000).threads(), ThreadPool::kMaxThreads);
}

// Threads are really on: two tasks that wait for each other end only when two threads run them.
TEST(ThreadPool, TasksRunAtTheSameTime) {
  ThreadPool pool(2);
  if (pool.threads() < 2) GTEST_SKIP() << "this build has no threads (HEADWISE_THREADS off)";
  std::atomic<int> met{0};
  pool.Run(
      0, 2,
      [](void* context, std::int64_t, int) {
        auto* both = static_cast<std::atomic<int>*>(context);
        ++*both;
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (both->load() < 2 && std::chrono::steady_clock::now() < give_up) {
        }
      },
      &met);
  EXPECT_EQ(met.load(), 2);
}

TEST(ThreadPool, ABudgetOfNothingStillMakesProgress) {
  ThreadPool pool(3);
  Counts counts(20);
  std::int64_t next = 0;
  int slices = 0;
  while (next < 20) {
    const std::int64_t before = next;
    next = pool.Run(next, 20, &Counts::Task, &counts, 0.0);
    ASSERT_GT(next, before);
    ASSERT_LE(++slices, 20);
  }
  for (const auto& runs : counts.runs) EXPECT_EQ(runs.load(), 1);
}

TEST(ThreadPool, ScratchIsZeroedAtItsHeadForANewJob) {
  ThreadPool pool(1);
  ASSERT_TRUE(pool.ReserveScratch(256).ok());
  const std::uint64_t a = pool.NextJobId();
  const std::uint64_t b = pool.NextJobId();
  auto* words = static_cast<std::uint64_t*>(pool.Scratch(0, a));
  words[0] = 7;
  EXPECT_EQ(static_cast<std::uint64_t*>(pool.Scratch(0, a))[0], 7U);
  EXPECT_EQ(static_cast<std::uint64_t*>(pool.Scratch(0, b))[0], 0U);
  EXPECT_EQ(static_cast<std::uint64_t*>(pool.Scratch(0, a))[0], 0U);
}

TEST(ThreadPool, ScratchThatCannotBeHadIsAStatus) {
  ThreadPool pool(2);
  const Status status = pool.ReserveScratch(std::uint64_t{1} << 62);
  EXPECT_EQ(status.code, StatusCode::kOutOfMemory);
  EXPECT_GE(status.bytes_wanted, std::uint64_t{1} << 62);
  EXPECT_TRUE(pool.ReserveScratch(1024).ok());
}

// Few operations are not worth waking a thread, whatever the number of tasks.
TEST(Job, LittleWorkStaysOnTheCallingThread) {
  ThreadPool pool(4);
  Counts counts(100);
  for (int again = 0; again < 50; ++again) {
    Job job;
    ASSERT_TRUE(job.AddPhase(100, &Counts::Task, &counts, 1000.0).ok());
    ASSERT_TRUE(job.Run(pool));
  }
  EXPECT_EQ(counts.threads[0].load(), 50 * 100);
}

TEST(Job, RunsPhasesInOrderHoweverManyThereAre) {
  ThreadPool pool(2);
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int number;
  };
  std::vector<Step> steps;
  for (int i = 0; i < 50; ++i) steps.push_back({&order, i});
  Job job;
  for (Step& step : steps) {
    ASSERT_TRUE(job.AddPhase(
                       1,
                       [](void* context, std::int64_t, int) {
                         auto* self = static_cast<Step*>(context);
                         self->order->push_back(self->number);
                       },
                       &step)
                    .ok());
  }
  while (!job.Run(pool, 0.0)) {
  }
  ASSERT_EQ(order.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace headwise
