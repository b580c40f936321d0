// Kernel: the machine's two ceilings as the other kernels could reach them at best: multiply-adds that wait for nothing,
// and reads of memory with no work on them. For benchmarks and guards; no result of the library depends on these.
#pragma once

#include <cstdint>

namespace headwise::kernels {

// Called through this table, never directly, for the reason that stands in kernel_table.h.
struct ProbeKernels {
  // `rounds` times kProbeChains independent MulAdd of one vector; returns the floating-point operations, two a lane.
  double (*multiply_add)(std::int64_t rounds, float* sink);
  // Reads data[0 ... count - 1], a multiple of kProbeReadBlock, once; *sink takes their sum.
  void (*read)(const float* data, std::int64_t count, float* sink);
};

// A multiply-add takes 4 cycles, or 6 to 8 as a multiply and an add, and two start in each: 8 chains keep the units busy,
// or 12 and more of two operations. 12 is what the kernels' tile has, and fits V8's 15 registers with the two operands.
inline constexpr int kProbeChains = 12;
inline constexpr int kProbeReadBlock = 64;  // floats: 8 vectors of the widest kind

const ProbeKernels& Probes();

}  // namespace headwise::kernels
