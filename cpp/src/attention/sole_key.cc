// Attention driver: see sole_key.h.
#include "attention/sole_key.h"

#include <limits>

#include "attention/block_mask.h"

namespace headwise {
namespace {

constexpr float kHides = -std::numeric_limits<float>::infinity();

std::int64_t RowOf(const BroadcastStrides& s, std::int32_t b, std::int32_t h, std::int32_t i) {
  return std::int64_t{b} * s.batch + std::int64_t{h} * s.head + std::int64_t{i} * s.row;
}

}  // namespace

bool SeesOneKeyAtMost(const AttentionArgs& args, const Visibility& visibility, std::int32_t b, std::int32_t h,
                      std::int32_t i) {
  const std::uint8_t* mask = args.mask == nullptr ? nullptr : args.mask + RowOf(args.mask_strides, b, h, i);
  const float* bias = args.bias == nullptr ? nullptr : args.bias + RowOf(args.bias_strides, b, h, i);
  const std::uint8_t* padding =
      args.key_padding_mask == nullptr ? nullptr : args.key_padding_mask + std::int64_t{b} * args.keys;
  const auto shows = [&](std::int32_t j) {
    if (padding != nullptr && padding[j] == 0) return false;
    if (bias != nullptr && bias[std::int64_t{j} * args.bias_strides.column] == kHides) return false;
    if (mask == nullptr) return true;
    const std::int32_t at = args.mask_strides.column == 0 ? 0 : j;
    return args.mask_bits != 0 ? ((mask[at >> 3] >> (at & 7)) & 1) != 0 : mask[at] != 0;
  };
  std::int64_t count = 0;
  const auto add = [&](std::int32_t begin, std::int32_t end) {
    if (mask == nullptr && bias == nullptr && padding == nullptr) {
      count += end - begin;
      return;
    }
    for (std::int32_t j = begin; j < end && count < 2; ++j) count += shows(j) ? 1 : 0;
  };
  const KeyRange range = visibility.Row(i);
  if (range.empty()) return true;
  if (const BlockMask blocks(args); blocks.given()) {
    blocks.ForEachListed(i, range.begin, range.end, add);
  } else {
    add(range.begin, range.end);
  }
  return count < 2;
}

}  // namespace headwise
