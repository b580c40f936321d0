// Public: measures nothing itself, but does a known amount of work at the rate that the machine allows at best, so that
// a clock around it gives the ceilings beside which the kernels' rates are read.
#pragma once

#include <cstdint>

#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// Runs `tasks` tasks of independent multiply-adds (the MulAdd of the kernels) over the pool's threads, each of some tenths
// of a millisecond; adds the floating-point operations done to *operations, two for a multiply-add.
Status ProbeMultiplyAdd(std::int64_t tasks, ThreadPool& pool, double* operations);

// Reads data[0 ... count - 1] once, divided over the pool's threads. `count` is a multiple of 64. To see the memory and not
// a cache, the data must be several times larger than the last one.
Status ProbeRead(const float* data, std::int64_t count, ThreadPool& pool);

}  // namespace headwise
