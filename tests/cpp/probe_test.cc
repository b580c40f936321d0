// Test: the ceilings' probe does the work it reports, on any number of threads.
#include "headwise/probe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace headwise {
namespace {

TEST(Probe, WorkDependsOnTheTasksAlone) {
  double once = 0.0;
  ThreadPool one(1);
  ASSERT_TRUE(ProbeMultiplyAdd(1, one, &once).ok());
  EXPECT_GT(once, 0.0);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    double operations = 0.0;
    ASSERT_TRUE(ProbeMultiplyAdd(5, pool, &operations).ok());
    EXPECT_EQ(operations, 5 * once);
  }
}

TEST(Probe, ReadsNothingOutside) {
  ThreadPool pool(2);
  // One block more than a task's share; the sanitizers watch the ends.
  const std::vector<float> data((1 << 18) + 64, 1.0F);
  EXPECT_TRUE(ProbeRead(data.data(), static_cast<std::int64_t>(data.size()), pool).ok());
  EXPECT_TRUE(ProbeRead(nullptr, 0, pool).ok());
}

TEST(Probe, RefusesWhatItCannotDo) {
  ThreadPool pool(1);
  double operations = 0.0;
  const std::vector<float> data(64, 1.0F);
  EXPECT_EQ(ProbeMultiplyAdd(-1, pool, &operations).code, StatusCode::kInvalidValue);
  EXPECT_EQ(ProbeRead(data.data(), 63, pool).code, StatusCode::kInvalidShape);
  EXPECT_EQ(ProbeRead(nullptr, 64, pool).code, StatusCode::kInvalidValue);
}

}  // namespace
}  // namespace headwise
