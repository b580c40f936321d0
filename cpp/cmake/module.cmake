# Build: the WebAssembly modules that the package loads, dist/wasm/headwise-<variant>.mjs and .wasm: one set of bindings, linked
# with the core of each variant.

file(GLOB bindings CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cpp/bindings/*.cc)
if(NOT bindings)
  message(WARNING "no bindings in cpp/bindings yet: the module is left out")
  return()
endif()

set(HEADWISE_DIST ${PROJECT_SOURCE_DIR}/dist/wasm CACHE PATH "Where the module is written")
add_library(module_objects OBJECT ${bindings})
target_include_directories(module_objects PRIVATE cpp/src cpp/include)
target_link_libraries(module_objects PRIVATE headwise_options headwise_warnings)
target_compile_options(module_objects PRIVATE
  # The bindings run once a call, or once at all: small is fast enough.
  -Oz
  -fno-exceptions
  -fno-rtti)
# Without RTTI embind cannot print the C++ name of a type that was never registered; the message is a developer's only.
target_compile_definitions(module_objects PRIVATE
  EMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0
  HEADWISE_SCALAR
  HEADWISE_THREADS=$<BOOL:${HEADWISE_THREADS}>)

add_library(module_linking INTERFACE)
target_link_options(module_linking INTERFACE
  # Not -O3: there Binaryen gives every assignment a local of its own (ssa-nomerge) and then moves the chains of
  # multiply-adds past the loads of the steps that follow, which V8 must spill (attention fell to half).
  -O2
  # Also when linking: it chooses the embind library whose type numbers are those of objects without RTTI.
  -lembind -fno-rtti -fno-exceptions
  # A factory function in an ES module: several engines may live side by side, and bundlers can follow its imports.
  -sMODULARIZE -sEXPORT_ES6 -sEXPORT_NAME=createHeadwise
  # Without 'node' on purpose: the package starts the pool's workers and reads the files itself (web/src/wasm/threads.ts), by
  # feature and not by host, so the glue has no import of node: modules, no top-level await, and works in any bundler,
  # under require() and in a service worker.
  -sENVIRONMENT=web,worker
  # The heap grows on demand up to what a 32-bit address reaches. TypeScript makes the memory, with the user's ceiling as
  # its maximum, and passes it in as `wasmMemory`; with threads the memory is an import in any case.
  -sIMPORTED_MEMORY -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB
  # Small at birth: what the stack, the statics and a toy call need. TypeScript's memory must be no smaller.
  -sINITIAL_MEMORY=4MB
  # Growth beyond the request is pinned down: 10 % more, at most 32 MB, so that big tensors do not waste hundreds.
  -sMEMORY_GROWTH_GEOMETRIC_STEP=0.10 -sMEMORY_GROWTH_GEOMETRIC_CAP=32MB
  # malloc returns null when memory is refused; the core turns that into a Status with the bytes wanted.
  -sABORTING_MALLOC=0
  # emmalloc, a third of the size, asks the system for the whole of a block although the heap's end lies free, so that calls
  # of growing sizes take the sum of them all (292 MB where 246 MB do); dlmalloc extends what is free.
  -sMALLOC=dlmalloc
  # The glue starts no worker: the package does, with a deadline, before the core makes its threads (a thread started later
  # would need the event loop to turn while the caller is inside a synchronous call).
  -sPTHREAD_POOL_SIZE=0
  # One thread more than that is an error (EAGAIN), never a deadlock.
  -sPTHREAD_POOL_SIZE_STRICT=2
  # Page policies (CSP) often forbid eval and new Function; embind does without.
  -sDYNAMIC_EXECUTION=0
  # Stacks hold no tiles (those are in Scratch), so little is enough; a thread's stack comes from the heap.
  -sSTACK_SIZE=512KB -sDEFAULT_PTHREAD_STACK_SIZE=256KB
  # The runtime lives until the engine drops it: no atexit, no flushing.
  -sEXIT_RUNTIME=0
  # The core opens no files. (printf would drag a file system in; it has none.)
  -sFILESYSTEM=0
  # Neither GL nor audio nor HTML events: their libraries are not looked for, nor built on a fresh toolchain.
  -sAUTO_NATIVE_LIBRARIES=0
  # Every engine in question has TextDecoder: no fallback decoder in the glue.
  -sTEXTDECODER=2
  # Nothing prints messages for the sake of old browsers or old Nodes: these have everything that the module needs.
  -sMIN_SAFARI_VERSION=160400 -sMIN_FIREFOX_VERSION=114 -sMIN_CHROME_VERSION=91
  # What TypeScript may hand to the factory, and nothing else.
  -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm,print,printErr,onAbort
  # PThread is where the package puts the workers that it started, and ends them. Nothing else of the runtime is exported
  # besides embind's functions: views of the heap are made by TypeScript from its memory.
  -sEXPORTED_RUNTIME_METHODS=PThread
  --no-entry
  # Growing shared memory slows JavaScript that holds views of it; ours makes views anew when the memory has grown.
  -Wno-pthreads-mem-growth)

set(trim_glue ${CMAKE_CURRENT_LIST_DIR}/trim-glue.cmake)
add_custom_target(module)
foreach(variant IN LISTS HEADWISE_VARIANTS)
  add_executable(module-${variant} $<TARGET_OBJECTS:module_objects>)
  target_link_libraries(module-${variant} PRIVATE headwise-${variant} module_linking)
  set_target_properties(module-${variant} PROPERTIES
    OUTPUT_NAME headwise-${variant}
    SUFFIX .mjs
    RUNTIME_OUTPUT_DIRECTORY ${HEADWISE_DIST})
  set_property(TARGET module-${variant} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_LIST_FILE} ${trim_glue})
  add_custom_command(TARGET module-${variant} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DGLUE=$<TARGET_FILE:module-${variant}> -P ${trim_glue})
  add_dependencies(module module-${variant})
endforeach()
