// Attention driver: whether a query row sees one key at most, by all that can hide one. Pure.
#pragma once

#include <cstdint>

#include "attention/visibility.h"
#include "headwise/attention.h"

namespace headwise {

// Looks no further than the second visible key. Not for rings.
bool SeesOneKeyAtMost(const AttentionArgs& args, const Visibility& visibility, std::int32_t b, std::int32_t h,
                      std::int32_t i);

}  // namespace headwise
