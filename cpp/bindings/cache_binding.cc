// Binding layer: the key/value cache: life, lengths, steps.
#include <emscripten/bind.h>

#include <new>

#include "call.h"
#include "headwise/kv_cache.h"

namespace headwise::binding {
namespace {

struct StepOperation {
  using Args = KeyValueStepArgs;
  Status Prepare(const Args& args, Job& job) { return step.Prepare(args, *Pool(), job); }
  KeyValueStep step;
};

// The cache's handle, or 0 after a failure, which Report has kept.
template <class Init>
Address Create(Init&& init) {
  auto* cache = new (std::nothrow) KeyValueCache;
  if (cache == nullptr) {
    Report(Status::OutOfMemory(sizeof(KeyValueCache)));
    return 0;
  }
  if (Report(init(*cache)) != 0) {
    delete cache;
    return 0;
  }
  return AddressOf(cache);
}

Address CreateCache(Address config) {
  return Create([config](KeyValueCache& cache) { return cache.Init(*At<KeyValueCacheConfig>(config)); });
}

// `rows` may be null: all of them.
Address ForkCache(Address from, Address rows, std::int32_t count) {
  return Create([=](KeyValueCache& cache) {
    return cache.InitFrom(*At<KeyValueCache>(from), At<std::int32_t>(rows), count, *Pool());
  });
}

void DestroyCache(Address cache) { delete At<KeyValueCache>(cache); }

// Where the lengths lie, one a batch row.
Address CacheLengths(Address cache) { return AddressOf(At<KeyValueCache>(cache)->lengths()); }

std::int32_t TrimCache(Address cache, Address lengths) {
  return Report(At<KeyValueCache>(cache)->Trim(At<std::int32_t>(lengths)));
}

// Where the first places that a ring still has lie, one a batch row.
Address CacheHeldFrom(Address cache) { return AddressOf(At<KeyValueCache>(cache)->held_from()); }

std::int32_t DropTokens(Address cache, Address begins, Address ends) {
  return Report(At<KeyValueCache>(cache)->Drop(At<std::int32_t>(begins), At<std::int32_t>(ends), *Pool()));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are JavaScript's
HEADWISE_AT_ONCE(cacheStep, StepOperation)
// NOLINTEND(readability-identifier-naming)

EMSCRIPTEN_BINDINGS(headwise_cache) {
  emscripten::function("beginCacheStep", &Begin<StepOperation>);
  emscripten::function("createCache", &CreateCache);
  emscripten::function("forkCache", &ForkCache);
  emscripten::function("destroyCache", &DestroyCache);
  emscripten::function("cacheLengths", &CacheLengths);
  emscripten::function("cacheHeldFrom", &CacheHeldFrom);
  emscripten::function("trimCache", &TrimCache);
  emscripten::function("dropTokens", &DropTokens);
}

}  // namespace headwise::binding
