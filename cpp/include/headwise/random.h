// Public: a stateless random generator and the layers' start values. The same seed gives the same floats in every build
// and on every machine: integers, and double operations that IEEE 754 defines to the bit.
#pragma once

#include <cstdint>

namespace headwise {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four words from a counter and a
// key.
void Philox(const std::uint32_t counter[4], const std::uint32_t key[2], std::uint32_t words[4]);

// Glorot-uniform values (Glorot and Bengio, 2010) in (-limit, limit), limit = sqrt(6 / (fan_in + fan_out)); target[i]
// depends on seed, stream and i alone. Streams of one seed are independent.
void GlorotUniform(std::uint64_t seed, std::uint32_t stream, std::int64_t fan_in, std::int64_t fan_out,
                   std::int64_t count, float* target);

}  // namespace headwise
