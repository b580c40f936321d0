// Memory layer: see aligned.h.
#include "memory/aligned.h"

#include <cstddef>
#include <cstdlib>

namespace headwise {
namespace {

// More than any machine grants; allocators differ in how they answer such a request.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 39;

}  // namespace

void* AllocateAligned(std::uint64_t bytes) {
  const std::uint64_t rounded = AlignUp(bytes == 0 ? 1 : bytes);
  if (rounded > kMostBytes || rounded > static_cast<std::uint64_t>(PTRDIFF_MAX)) return nullptr;
  return std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded));
}

void FreeAligned(void* memory) { std::free(memory); }

}  // namespace headwise
