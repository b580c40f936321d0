// Public: rotary position embedding (Su et al., "RoFormer", 2021). Pair i of a head's vector at position p is turned by
// the angle p * f_i, where f_i = base^(-2i / dim) unless a scaling rule changes it:
//
//   (a, b) <- (a cos - b sin, a sin + b cos)
//
// interleaved: the pair is (x[2i], x[2i + 1]); else it is (x[i], x[i + dim / 2]). Only the first `dim` elements turn,
// the tail is copied. Angles, sines and cosines are computed in double.
#pragma once

#include <cstdint>

#include "headwise/attention.h"
#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

// How frequencies are changed for texts longer than a model was trained on.
enum class RotaryRule : std::int32_t {
  kNone = 0,
  // f / factor: positions are interpolated (Chen et al., "Extending Context Window of Large Language Models via Positional
  // Interpolation", 2023).
  kLinear = 1,
  // base * factor^(dim / (dim - 2)): the fastest pair keeps its frequency, the slowest is interpolated (bloc97, "NTK-aware
  // scaled RoPE", 2023).
  kNtk = 2,
  // Interpolated below `low` turns within original_length, kept above `high`, a ramp over the pair's index in between (Peng
  // et al., "YaRN", 2023, as in the authors' code: the ramp's ends are rounded to whole pairs).
  kYarn = 3,
  // Interpolated below `low` turns within original_length, kept above `high`, in between weighted by the turns (Meta,
  // "The Llama 3 Herd of Models", 2024, and the code beside it).
  kLlama3 = 4,
};

struct RotaryScaling {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/rotary_scaling.def"  // its fields and what they mean
};

// f_i of pair i, 0 ... dim / 2 - 1.
double RotaryFrequency(const RotaryScaling& scaling, double base, std::int32_t dim, std::int32_t pair);

// All pointers are borrowed for the length of the call. `y` may be `x` (with equal strides), else they do not overlap.
struct RotaryArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/rotary_args.def"  // its fields and what they mean
};

// Adds the rotation to `job` as one phase; `args` outlives the job. kInvalidShape: a negative size, or a dim that is
// odd or above D; kInvalidValue: a base that is not finite and above 0, a missing pointer, a position outside the tables.
Status AddRotary(const RotaryArgs& args, Job& job);

// The same, at once.
Status Rotary(const RotaryArgs& args, ThreadPool& pool);

}  // namespace headwise
