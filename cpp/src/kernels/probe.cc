// Kernel: the ceilings' two loops.
#include "kernels/probe.h"

#include "simd/simd.h"

namespace headwise::kernels {

using simd::Vector;

// Neither const nor of this file alone: else the compiler folds them into literals, which V8 builds anew at every use (a
// fifth of the rate is left). The chains tend to 2, so they never meet a denormal number.
float probe_operands[2] = {0.5F, 1.0F};

namespace {

double MultiplyAddChains(std::int64_t rounds, float* sink) {
  const Vector factor = simd::Splat(probe_operands[0]);
  const Vector addend = simd::Splat(probe_operands[1]);
  Vector chain[kProbeChains];
  for (int c = 0; c < kProbeChains; ++c) chain[c] = simd::Splat(static_cast<float>(c));
  // The chain is a factor, not the addend: else plain SIMD's product would be the same in every round, and be hoisted.
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (int c = 0; c < kProbeChains; ++c) chain[c] = simd::MulAdd(chain[c], factor, addend);
  }
  Vector sum = chain[0];
  for (int c = 1; c < kProbeChains; ++c) sum = sum + chain[c];
  *sink += simd::Sum(sum);
  return 2.0 * kProbeChains * simd::kLanes * static_cast<double>(rounds);
}

void Read(const float* data, std::int64_t count, float* sink) {
  constexpr int kSums = 8;
  static_assert(kProbeReadBlock % (kSums * simd::kLanes) == 0);
  Vector sum[kSums];
  for (int s = 0; s < kSums; ++s) sum[s] = simd::Splat(0.0F);
  for (std::int64_t i = 0; i < count; i += kSums * simd::kLanes) {
    for (int s = 0; s < kSums; ++s) sum[s] = sum[s] + simd::Load(data + i + s * simd::kLanes);
  }
  Vector total = sum[0];
  for (int s = 1; s < kSums; ++s) total = total + sum[s];
  *sink += simd::Sum(total);
}

}  // namespace

// As the operands are, so that calls stay calls through a table.
ProbeKernels probes = {&MultiplyAddChains, &Read};

const ProbeKernels& Probes() { return probes; }

}  // namespace headwise::kernels
