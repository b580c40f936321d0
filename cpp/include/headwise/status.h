// Public: how a call of the core ends. The core neither throws, prints nor aborts.
#pragma once

#include <cstdint>

namespace headwise {

enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidShape = 1,
  kInvalidValue = 2,
  kOutOfMemory = 3,
};

// `argument` names what was wrong, a string literal; `bytes_wanted` is set with kOutOfMemory.
struct Status {
  StatusCode code = StatusCode::kOk;
  const char* argument = "";
  std::uint64_t bytes_wanted = 0;

  constexpr bool ok() const { return code == StatusCode::kOk; }
  static constexpr Status Ok() { return {}; }
  static constexpr Status InvalidShape(const char* argument) { return {StatusCode::kInvalidShape, argument, 0}; }
  static constexpr Status InvalidValue(const char* argument) { return {StatusCode::kInvalidValue, argument, 0}; }
  static constexpr Status OutOfMemory(std::uint64_t bytes) { return {StatusCode::kOutOfMemory, "memory", bytes}; }
};

}  // namespace headwise
