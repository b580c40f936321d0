// Kernel: rows that a kernel reads a line at a time while it works on others, so that they lie in the caches when their turn
// comes.
//
// Between two loads of new lines the kernels of decoding do so much arithmetic that few lines are on their way, and they
// walk several rows at once, in which the processor's prefetcher sees no stream. WebAssembly has no prefetch instruction; a
// plain load whose value nobody uses does the same as long as enough independent work follows it.
//
// Contract: nothing outside the rows is read, and nothing depends on what was read.
#pragma once

#include <cstddef>

namespace headwise::kernels {

struct ReadAhead {
  const unsigned char* row = nullptr;
  std::ptrdiff_t stride = 0;  // bytes from a row to the next
  std::ptrdiff_t bytes = 0;   // of a row
  int rows = 0;

  // Reads the next `count` rows, or what is left of them.
  void Take(int count) {
    constexpr std::ptrdiff_t kLine = 64;
    for (; count > 0 && rows > 0; --count, --rows, row += stride) {
      for (std::ptrdiff_t at = 0; at < bytes; at += kLine) {
        asm volatile("" : : "r"(row[at]));  // the load is made, whatever the optimizer thinks of it
      }
    }
  }
};

}  // namespace headwise::kernels
