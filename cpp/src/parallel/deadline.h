// Parallel layer: a point in time after which no further task is begun.
#pragma once

#include <chrono>

namespace headwise {

class Deadline {
 public:
  explicit Deadline(double budget_ms) : open_(budget_ms > 1e9) {
    if (!open_) at_ = Clock::now() + std::chrono::microseconds(static_cast<long long>(budget_ms * 1000.0));
  }
  bool Passed() const { return !open_ && Clock::now() >= at_; }
  double RemainingMs() const {
    if (open_) return 1e300;
    return std::chrono::duration<double, std::milli>(at_ - Clock::now()).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool open_;
  Clock::time_point at_{};
};

}  // namespace headwise
