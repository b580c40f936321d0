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
  // kNtk with factor * n / original_length - (factor - 1) in the place of factor, where n is the text's length so far, at
  // least original_length (u/emozilla, "Dynamically scaled RoPE", 2023, as in Hugging Face's transformers).
  kDynamic = 5,
  // f / short_factors[pair] for a text of up to original_length, f / long_factors[pair] for a longer one (Ding et al.,
  // "LongRoPE", 2024, as in Microsoft's code of Phi-3).
  kLongRope = 6,
};

struct RotaryScaling {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/rotary_scaling.def"  // its fields and what they mean
};

// What a rotary embedding is made of. Pointers are borrowed.
struct RotarySettings {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/rotary_settings.def"  // its fields and what they mean
};

// kInvalidShape "rope.dim": odd, below 2 or above `size`; kInvalidValue: another field, by its name.
Status CheckRotarySettings(const RotarySettings& rope, std::int32_t size);

// Copies of the arrays that settings point at. Copies of the object share them. References are counted on the thread that
// prepares calls, hence plain integers.
class RotaryArrays {
 public:
  RotaryArrays() = default;
  RotaryArrays(const RotaryArrays& other);
  RotaryArrays& operator=(const RotaryArrays& other);
  ~RotaryArrays();

  // Takes the copies and leads `rope` to them; what was kept before is left. kOutOfMemory: both are as before.
  Status Keep(RotarySettings& rope);

 private:
  struct Block;
  Block* block_ = nullptr;
};

// f_i of pair i, 0 ... dim / 2 - 1, in a text of `length` tokens.
double RotaryFrequency(const RotarySettings& rope, std::int32_t pair, std::int64_t length);

// All pointers are borrowed for the length of the call. `y` may be `x` (with equal strides), else they do not overlap.
struct RotaryArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/rotary_args.def"  // its fields and what they mean
};

// Adds the rotation to `job` as one phase; `args` outlives the job. kInvalidShape "x": a negative size; kInvalidValue: a
// missing pointer, "positions" outside the tables; and what CheckRotarySettings says.
Status AddRotary(const RotaryArgs& args, Job& job);

// The same, at once.
Status Rotary(const RotaryArgs& args, ThreadPool& pool);

}  // namespace headwise
