// Parallel layer: one block of working memory a thread, kept and grown from call to call.
#pragma once

#include <cstdint>
#include <cstring>

#include "headwise/status.h"
#include "headwise/thread_pool.h"
#include "memory/aligned.h"

namespace headwise {

class ScratchSet {
 public:
  ScratchSet() = default;
  ~ScratchSet() { Release(); }
  ScratchSet(const ScratchSet&) = delete;
  ScratchSet& operator=(const ScratchSet&) = delete;

  // All or nothing: on failure the old blocks stay, since a call that is between two slices counts on them.
  Status Reserve(std::uint64_t bytes, int threads) {
    bytes = AlignUp(bytes < ThreadPool::kScratchHeader ? ThreadPool::kScratchHeader : bytes);
    if (bytes <= bytes_) return Status::Ok();
    void* grown[ThreadPool::kMaxThreads] = {};
    for (int i = 0; i < threads; ++i) {
      grown[i] = AllocateAligned(bytes);
      if (grown[i] != nullptr) continue;
      while (i > 0) FreeAligned(grown[--i]);
      return Status::OutOfMemory(CheckedMul(bytes, static_cast<std::uint64_t>(threads)));
    }
    Release();
    for (int i = 0; i < threads; ++i) {
      blocks_[i] = grown[i];
      owners_[i] = 0;
    }
    count_ = threads;
    bytes_ = bytes;
    return Status::Ok();
  }
  void Release() {
    for (int i = 0; i < count_; ++i) {
      FreeAligned(blocks_[i]);
      blocks_[i] = nullptr;
    }
    count_ = 0;
    bytes_ = 0;
  }
  void* Of(int thread, std::uint64_t job) {
    if (owners_[thread] != job) {
      owners_[thread] = job;
      std::memset(blocks_[thread], 0, ThreadPool::kScratchHeader);
    }
    return blocks_[thread];
  }
  std::uint64_t total_bytes() const { return bytes_ * static_cast<std::uint64_t>(count_); }

 private:
  void* blocks_[ThreadPool::kMaxThreads] = {};
  std::uint64_t owners_[ThreadPool::kMaxThreads] = {};  // the job that last used the block; each written by its thread
  int count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace headwise
