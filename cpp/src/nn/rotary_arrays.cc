// Blocks: the arrays that a rotary embedding's settings point at, kept by whoever outlives the settings' giver.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "headwise/rotary.h"
#include "memory/aligned.h"
#include "memory/carver.h"

namespace headwise {

struct RotaryArrays::Block {
  int references = 1;
};

RotaryArrays::RotaryArrays(const RotaryArrays& other) : block_(other.block_) {
  if (block_ != nullptr) ++block_->references;
}

RotaryArrays& RotaryArrays::operator=(const RotaryArrays& other) {
  RotaryArrays copy(other);
  std::swap(block_, copy.block_);
  return *this;
}

RotaryArrays::~RotaryArrays() {
  if (block_ != nullptr && --block_->references == 0) FreeAligned(block_);
}

Status RotaryArrays::Keep(RotarySettings& rope) {
  RotaryArrays kept;
  const auto half = static_cast<std::uint64_t>(rope.dim / 2);
  const std::uint64_t table = CheckedMul(half, static_cast<std::uint64_t>(rope.table_rows));
  const std::pair<const float**, std::uint64_t> arrays[] = {
      {&rope.cos, table}, {&rope.sin, table}, {&rope.scaling.short_factors, half}, {&rope.scaling.long_factors, half}};
  if (std::all_of(std::begin(arrays), std::end(arrays), [](const auto& array) { return *array.first == nullptr; })) {
    *this = kept;
    return Status::Ok();
  }
  const auto walk = [&arrays](void* memory) {
    Carver carver(memory);
    carver.Take<Block>(1);
    for (const auto& [pointer, count] : arrays) {
      if (*pointer == nullptr) continue;
      auto* const copy = carver.Take<float>(count);
      if (memory != nullptr) *pointer = std::copy_n(*pointer, count, copy) - count;
    }
    return carver.used();
  };
  const std::uint64_t bytes = walk(nullptr);
  void* const memory = AllocateAligned(bytes);
  if (memory == nullptr) return Status::OutOfMemory(bytes);
  kept.block_ = new (memory) Block;
  walk(memory);
  *this = kept;
  return Status::Ok();
}

}  // namespace headwise
