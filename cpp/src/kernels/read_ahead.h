// Kernel: rows that a kernel reads a line at a time while it works on others, so that they lie in the caches when their turn
// comes.
//
// Between two loads of new lines the kernels of decoding do so much arithmetic that few lines are on their way, and they
// walk several rows at once, in which the processor's prefetcher sees no stream. WebAssembly has no prefetch instruction; a
// plain load whose value nobody uses does the same. The lines are read in the order of their addresses, each as the work
// for one is done: two rows read in turn are no stream to a prefetcher and took twice the time, sixteen lines at once a
// fifth more than one at a time (64 MiB of keys, as a share of a plain reader's speed: 0.92, 0.54 in turn, 0.78 at once).
//
// Contract: nothing outside the rows is read, and nothing depends on what was read.
#pragma once

#include <cstddef>

namespace headwise::kernels {

struct ReadAhead {
  // As many numbers of the rows are read ahead at a time: as floats a line.
  static constexpr int kStep = 16;

  const unsigned char* row = nullptr;
  std::ptrdiff_t stride = 0;  // bytes from a row to the next
  std::ptrdiff_t bytes = 0;   // of a row
  std::ptrdiff_t pace = 0;    // bytes of kStep numbers
  int rows = 0;

  // Where a loop reads.
  struct Line {
    const unsigned char* at;
    std::ptrdiff_t pace;

    // To be called once for so many numbers that the loop works on; nothing below kStep.
    template <int kNumbers>
    [[gnu::always_inline]] void Read() {
      for (int i = 0; i < kNumbers / kStep; ++i, at += pace) {
        asm volatile("" : : "r"(*at));  // the load is made, whatever the optimizer thinks of it
      }
    }
  };

  // All rows, once: for a loop to read that works on `numbers` numbers. Where there are gaps between them, or they hold fewer,
  // they are read here and now, and the loop reads `idle` again and again.
  Line Take(std::ptrdiff_t numbers, const void* idle) {
    if (stride == bytes && rows * bytes >= numbers / kStep * pace) {
      rows = 0;
      return {row, pace};
    }
    for (; rows > 0; --rows, row += stride) {
      for (Line line = {row, kLine}; line.at < row + bytes;) line.Read<kStep>();
    }
    return {static_cast<const unsigned char*>(idle), 0};
  }

 private:
  static constexpr std::ptrdiff_t kLine = 64;
};

}  // namespace headwise::kernels
