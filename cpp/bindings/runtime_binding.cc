// Binding layer: the module's life: its thread pool, memory for JavaScript's staging, accounting, the last status.
#include <emscripten/bind.h>
#include <emscripten/heap.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <string>

#include "binding.h"
#include "kernels/kernel_table.h"
#include "memory/aligned.h"

extern "C" char __heap_base;  // the linker's: where the heap begins, after stack and statics

namespace headwise::binding {
namespace {

ThreadPool* pool = nullptr;
Status last_status;

// Starts the pool, once, and returns how many threads it really has; 0 when there is no memory for it.
std::int32_t Start(std::int32_t threads) {
  if (pool == nullptr) pool = new (std::nothrow) ThreadPool(threads);
  return pool == nullptr ? 0 : pool->threads();
}

// 64-byte aligned, or 0 when the memory cannot be had.
Address Allocate(double bytes) { return AddressOf(AllocateAligned(static_cast<std::uint64_t>(bytes))); }

void Release(Address block) { FreeAligned(At<void>(block)); }

// Frees the threads' working memory when it holds more than `bytes` and no call is in progress; the next call allocates
// what it needs.
void TrimScratch(double bytes) {
  if (calls_in_progress == 0 && static_cast<double>(pool->scratch_bytes()) > bytes) pool->ReleaseScratch();
}

// Everything that is allocated, the threads' working memory and JavaScript's staging included.
double InUseBytes() { return static_cast<double>(static_cast<std::uint32_t>(mallinfo().uordblks)); }

// How far the heap's end has ever been pushed: the highest use, rounded up by what lay free in between.
double PeakBytes() { return static_cast<double>(AddressOf(sbrk(0)) - AddressOf(&__heap_base)); }

std::int32_t LastStatusCode() { return static_cast<std::int32_t>(last_status.code); }
std::string StatusArgument() { return last_status.argument; }
double StatusBytes() { return static_cast<double>(last_status.bytes_wanted); }

}  // namespace

ThreadPool* Pool() { return pool; }

std::int32_t Report(const Status& status) {
  last_status = status;
  return static_cast<std::int32_t>(status.code);
}

EMSCRIPTEN_BINDINGS(headwise_runtime) {
  emscripten::function("start", &Start);
  emscripten::function("useShortTurns", &kernels::UseShortTurns);
  emscripten::function("allocate", &Allocate);
  emscripten::function("release", &Release);
  emscripten::function("trimScratch", &TrimScratch);
  emscripten::function("inUseBytes", &InUseBytes);
  emscripten::function("peakBytes", &PeakBytes);
  emscripten::function("statusCode", &LastStatusCode);
  emscripten::function("statusArgument", &StatusArgument);
  emscripten::function("statusBytes", &StatusBytes);
}

}  // namespace headwise::binding
