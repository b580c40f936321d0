// Public: the parameters of a model in one block, so that an optimizer, clipping and storage see one flat array each of
// values, gradients and moments.
#pragma once

#include <cstdint>

#include "headwise/status.h"

namespace headwise {

class ParameterArena {
 public:
  static constexpr int kMostAxes = 4;
  static constexpr int kMostName = 96;

  struct Parameter {
    char name[kMostName];
    std::int32_t rank = 0;
    std::int32_t shape[kMostAxes] = {};
    std::int64_t offset = 0;  // in floats, a multiple of 16
    std::int64_t count = 0;
  };

  ParameterArena() = default;
  ~ParameterArena();
  ParameterArena(const ParameterArena&) = delete;
  ParameterArena& operator=(const ParameterArena&) = delete;

  // Adds a parameter [shape...] before Allocate, and returns its index. A name that is empty, too long or taken, a size below
  // 0 or more than kMostAxes axes: kInvalidValue or kInvalidShape.
  Status Add(const char* name, const std::int32_t* shape, std::int32_t rank, std::int32_t* index);
  // Memory for all: values, and with `moments` = 0 ... 2 also gradients and that many further arrays. All zeros, so that the
  // gaps between parameters are inert. Negative `moments`: values only.
  Status Allocate(std::int32_t moments);

  std::int32_t size() const { return count_; }
  const Parameter& parameter(std::int32_t index) const { return parameters_[index]; }
  // -1 when there is none of that name.
  std::int32_t Find(const char* name) const;

  // The flat arrays, `floats()` long with the gaps; null where there is none.
  std::int64_t floats() const { return floats_; }
  float* values() const { return values_; }
  float* gradients() const { return Part(1); }
  float* moment(std::int32_t n) const { return Part(2 + n); }
  float* value(std::int32_t index) const { return values_ + parameters_[index].offset; }
  float* gradient(std::int32_t index) const { return gradients() + parameters_[index].offset; }
  void ClearGradients();

 private:
  float* Part(std::int32_t n) const { return n < parts_ ? values_ + n * floats_ : nullptr; }

  Parameter* parameters_ = nullptr;
  std::int32_t count_ = 0;
  std::int32_t capacity_ = 0;
  float* values_ = nullptr;
  std::int32_t parts_ = 0;
  std::int64_t floats_ = 0;
};

}  // namespace headwise
