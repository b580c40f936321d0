# Build: the compiler options that every target shares, as two interface targets: `headwise_options` (what changes the
# code) and `headwise_warnings`.

add_library(headwise_options INTERFACE)
target_compile_options(headwise_options INTERFACE
  # Results are promised to be the same for every thread count and call path. A compiler that fuses a * b + c where it
  # likes would round one inlined copy of a function differently from another; MulAdd asks for fusing explicitly.
  -ffp-contract=off
  # Never -ffast-math: hidden keys are told by infinities, and NaN must pass through.
  -fno-fast-math
  # sqrt and friends set no errno: nobody reads it, and it keeps them from being one instruction. Not a change of value.
  -fno-math-errno)

if(HEADWISE_SANITIZE)
  set(sanitize -fsanitize=${HEADWISE_SANITIZE} -fno-omit-frame-pointer)
  if(HEADWISE_SANITIZE MATCHES "undefined")
    list(APPEND sanitize -fno-sanitize-recover=undefined)  # a report must fail the test, not scroll by
  endif()
  target_compile_options(headwise_options INTERFACE ${sanitize})
  target_link_options(headwise_options INTERFACE ${sanitize})
endif()

if(EMSCRIPTEN)
  # -pthread also for a build without threads: objects with and without atomics do not link together.
  target_compile_options(headwise_options INTERFACE -msimd128 -pthread)
  target_link_options(headwise_options INTERFACE -pthread)
  # The two builds, and what each adds to the objects that know of SIMD; all other objects are compiled once for both.
  set(HEADWISE_VARIANTS simd relaxed)
  set(HEADWISE_OPTIONS_simd "")
  set(HEADWISE_OPTIONS_relaxed -mrelaxed-simd)
else()
  find_package(Threads REQUIRED)
  target_link_libraries(headwise_options INTERFACE Threads::Threads)
  if(HEADWISE_ARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(headwise_options INTERFACE -march=${HEADWISE_ARCH})
  endif()
endif()

add_library(headwise_warnings INTERFACE)
target_compile_options(headwise_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wundef
  # int to std::size_t in an index is everywhere in code that counts in int32 and int64; -Wconversion keeps the lossy ones.
  -Wno-sign-conversion
  # Where addresses have 32 bits, every int64 offset into a tensor is shortened at last; the native builds keep the check.
  $<$<BOOL:${EMSCRIPTEN}>:-Wno-shorten-64-to-32>
  $<$<BOOL:${HEADWISE_WERROR}>:-Werror>)
