// Public: sinusoidal position encodings (Vaswani et al., "Attention Is All You Need", 2017, section 3.5).
//
//   y[p, 2i] = sin(p / 10000^(2i / E)),  y[p, 2i + 1] = cos(p / 10000^(2i / E))
//
// Sine and cosine of a pair share their exponent; an odd E ends in a sine. Computed in double, rounded once.
#pragma once

#include <cstdint>

#include "headwise/field.h"
#include "headwise/job.h"
#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise {

struct PositionalEncodingArgs {
#define HEADWISE_FIELD HEADWISE_MEMBER
#include "headwise/fields/positional_encoding_args.def"  // its fields and what they mean
};

// Adds the computation to `job` as one phase; `args` outlives the job.
Status AddPositionalEncoding(const PositionalEncodingArgs& args, Job& job);

// The same, at once.
Status PositionalEncoding(const PositionalEncodingArgs& args, ThreadPool& pool);

}  // namespace headwise
