// Memory layer: cuts one block into aligned arrays. The same walk over a null block gives the bytes to reserve, so a
// layout is written once.
#pragma once

#include <cstdint>

#include "memory/aligned.h"

namespace headwise {

class Carver {
 public:
  explicit Carver(void* block) : base_(static_cast<unsigned char*>(block)) {}

  // The next `count` elements; null while measuring.
  template <class T>
  T* Take(std::uint64_t count) {
    const std::uint64_t at = used_;
    used_ = CheckedAdd(used_, AlignUp(CheckedMul(count, sizeof(T))));
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  std::uint64_t used() const { return used_; }

 private:
  unsigned char* base_;
  std::uint64_t used_ = 0;
};

}  // namespace headwise
