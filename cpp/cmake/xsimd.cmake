# Build: finds xsimd's headers (xsimd >= 13) and offers them as the target `headwise_xsimd`.
# -DHEADWISE_XSIMD_INCLUDE=DIR names a folder that holds xsimd/xsimd.hpp.

find_path(HEADWISE_XSIMD_INCLUDE xsimd/xsimd.hpp
  HINTS $ENV{HEADWISE_XSIMD_INCLUDE} $ENV{XSIMD_INCLUDE}
  PATHS /usr/include /usr/local/include /opt/homebrew/include
  # Under Emscripten the search is confined to its sysroot; xsimd is headers alone, so the host's will do.
  NO_CMAKE_FIND_ROOT_PATH)
if(NOT HEADWISE_XSIMD_INCLUDE)
  message(FATAL_ERROR "xsimd's headers are missing. Install xsimd 13 or newer (Debian: libxsimd-dev), or name the folder "
    "that holds xsimd/xsimd.hpp with -DHEADWISE_XSIMD_INCLUDE=DIR or the environment variable of that name.")
endif()

file(STRINGS ${HEADWISE_XSIMD_INCLUDE}/xsimd/config/xsimd_config.hpp xsimd_major REGEX "define XSIMD_VERSION_MAJOR")
string(REGEX MATCH "[0-9]+$" xsimd_major "${xsimd_major}")
if(xsimd_major LESS 13)
  message(FATAL_ERROR "xsimd ${xsimd_major} in ${HEADWISE_XSIMD_INCLUDE} is too old: 13 or newer is needed.")
endif()

# The folder may be /usr/include itself, and with that on the path a cross-compiler would take the host's libc headers:
# so a folder of our own with nothing but xsimd in it.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/xsimd-include)
file(CREATE_LINK ${HEADWISE_XSIMD_INCLUDE}/xsimd ${CMAKE_BINARY_DIR}/xsimd-include/xsimd SYMBOLIC)
add_library(headwise_xsimd INTERFACE)
target_include_directories(headwise_xsimd SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/xsimd-include)
