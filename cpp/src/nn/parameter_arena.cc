// Blocks: the parameters of a model in one block.
#include "headwise/parameter_arena.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "memory/aligned.h"

namespace headwise {
namespace {

constexpr std::int64_t kGap = kAlignment / sizeof(float);
constexpr std::int32_t kFirstCapacity = 32;

}  // namespace

ParameterArena::~ParameterArena() {
  FreeAligned(parameters_);
  FreeAligned(values_);
}

std::int32_t ParameterArena::Find(const char* name) const {
  for (std::int32_t i = 0; i < count_; ++i) {
    if (std::strcmp(parameters_[i].name, name) == 0) return i;
  }
  return -1;
}

Status ParameterArena::Add(const char* name, const std::int32_t* shape, std::int32_t rank, std::int32_t* index) {
  const std::size_t length = std::strlen(name);
  if (length == 0 || length >= kMostName || Find(name) >= 0 || values_ != nullptr) return Status::InvalidValue("name");
  if (rank < 0 || rank > kMostAxes) return Status::InvalidShape("shape");
  std::uint64_t elements = 1;
  for (std::int32_t axis = 0; axis < rank; ++axis) {
    if (shape[axis] < 0) return Status::InvalidShape("shape");
    elements = CheckedMul(elements, static_cast<std::uint64_t>(shape[axis]));
  }
  if (CheckedMul(elements, sizeof(float)) > kTooLarge / 8) return Status::OutOfMemory(kTooLarge);
  if (count_ == capacity_) {
    const std::int32_t capacity = capacity_ == 0 ? kFirstCapacity : 2 * capacity_;
    const std::uint64_t bytes = CheckedMul(static_cast<std::uint64_t>(capacity), sizeof(Parameter));
    void* place = AllocateAligned(bytes);
    if (place == nullptr) return Status::OutOfMemory(bytes);
    auto* grown = static_cast<Parameter*>(place);
    for (std::int32_t i = 0; i < count_; ++i) new (grown + i) Parameter(parameters_[i]);
    FreeAligned(parameters_);
    parameters_ = grown;
    capacity_ = capacity;
  }
  Parameter* added = new (parameters_ + count_) Parameter{};
  std::memcpy(added->name, name, length + 1);
  added->rank = rank;
  for (std::int32_t axis = 0; axis < rank; ++axis) added->shape[axis] = shape[axis];
  added->offset = floats_;
  added->count = static_cast<std::int64_t>(elements);
  floats_ += (added->count + kGap - 1) / kGap * kGap;
  *index = count_++;
  return Status::Ok();
}

Status ParameterArena::Allocate(std::int32_t moments) {
  if (values_ != nullptr) return Status::InvalidValue("arena");
  if (moments > 2) return Status::InvalidValue("moments");
  const std::int32_t parts = moments < 0 ? 1 : 2 + moments;
  const std::uint64_t bytes =
      CheckedMul(CheckedMul(static_cast<std::uint64_t>(floats_), static_cast<std::uint64_t>(parts)), sizeof(float));
  values_ = static_cast<float*>(AllocateAligned(bytes));
  if (values_ == nullptr) return Status::OutOfMemory(bytes);
  parts_ = parts;
  std::fill_n(values_, floats_ * parts, 0.0F);
  return Status::Ok();
}

void ParameterArena::ClearGradients() {
  if (gradients() != nullptr) std::fill_n(gradients(), floats_, 0.0F);
}

}  // namespace headwise
