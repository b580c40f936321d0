// Binding layer: what the binding's files share: pointers that cross the border, the one pool of the module, the last status.
#pragma once

#include <cstdint>

#include "headwise/status.h"
#include "headwise/thread_pool.h"

namespace headwise::binding {

// Addresses cross the border as unsigned 32-bit numbers, so that those above 2 GiB stay positive in JavaScript.
using Address = std::uint32_t;

template <class T>
T* At(Address address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

inline Address AddressOf(const void* pointer) {
  return static_cast<Address>(reinterpret_cast<std::uintptr_t>(pointer));
}

// The module's pool: made by Start, alive as long as the module. Null before.
ThreadPool* Pool();

// How many calls are begun and not ended: their slices need the threads' working memory.
inline std::int32_t calls_in_progress = 0;

// Keeps the status for StatusArgument and StatusBytes, and returns its code: 0 is success.
std::int32_t Report(const Status& status);

}  // namespace headwise::binding
