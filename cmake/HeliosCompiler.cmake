# The compiler and its flags. clang-19 is what the project is built with every day.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} destroys coroutine temporaries twice (aggregates and lambdas inside "
                      "co_await expressions). Use clang-19: cmake --preset release, or -DCMAKE_CXX_COMPILER=clang++-19.")
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} writes to coroutine frames after suspension (LLVM #56301). "
                      "Use clang-19: cmake --preset release, or -DCMAKE_CXX_COMPILER=clang++-19.")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang|GNU")
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER_ID} is not supported: use clang-19.")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HELIOS_TESTS "Build tests and benchmarks" ON)
option(HELIOS_WERROR "Warnings in our own code are errors" ON)
option(HELIOS_FUZZ "Build libFuzzer targets" OFF)
set(HELIOS_SANITIZE "" CACHE STRING "address (with undefined) or thread; empty for none")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")  # assertions stay on: they guard our own mistakes, not input
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

find_program(HELIOS_CCACHE ccache)
if(HELIOS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache refuses every unit that takes a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${HELIOS_CCACHE}")
endif()

add_library(helios_flags INTERFACE)  # for our own targets only
target_compile_options(helios_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                                              $<$<BOOL:${HELIOS_WERROR}>:-Werror>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)  # the floor; kernels are dispatched at run time up to AVX-512
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Xclang -fno-pch-timestamp)  # ccache: a precompiled header is the same whenever it was made
  find_program(HELIOS_LLD NAMES ld.lld-19 ld.lld)
  if(HELIOS_LLD)
    add_link_options("-fuse-ld=lld" "--ld-path=${HELIOS_LLD}")
  endif()
endif()

if(HELIOS_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(HELIOS_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HELIOS_SANITIZE)
  message(FATAL_ERROR "HELIOS_SANITIZE is '${HELIOS_SANITIZE}': use address or thread.")
endif()
if(HELIOS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HELIOS_FUZZ needs clang's libFuzzer.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
