# helios_library(name SOURCES … [PUBLIC_LINK …] [PRIVATE_LINK …])
set(HELIOS_PCH_HEADERS <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstring> <deque> <functional> <map> <memory>
    <mutex> <optional> <span> <string> <string_view> <utility> <variant> <vector>)

function(helios_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC_LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>")
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC_LINK} PRIVATE "$<BUILD_INTERFACE:helios_flags>" ${arg_PRIVATE_LINK})
  target_precompile_headers(${name} PRIVATE ${HELIOS_PCH_HEADERS})
endfunction()

# helios_test(name LABELS "unit" SOURCES … LINK … [TIMEOUT seconds]): one Catch2 program, each case its own ctest entry.
function(helios_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}" ${HELIOS_CATCH2_COMPAT})
  target_compile_definitions(${name} PRIVATE HELIOS_TEST_DATA="${CMAKE_SOURCE_DIR}/test/data" HELIOS_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINK} Catch2::Catch2WithMain helios_flags)
  target_precompile_headers(${name} PRIVATE ${HELIOS_PCH_HEADERS} <catch2/catch_test_macros.hpp>)
  # One ctest entry per program: a process start per case costs more than the cases do. Cases are listed with --list-tests.
  add_test(NAME ${name} COMMAND ${name} --durations no)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# helios_benchmark(name SOURCES … LINK …): built always, run tiny by ctest (label bench-smoke) so that it cannot rot.
function(helios_benchmark name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;SMOKE_ARGS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINK} helios_flags)
  add_test(NAME ${name}.smoke COMMAND ${name} ${arg_SMOKE_ARGS})
  set_tests_properties(${name}.smoke PROPERTIES LABELS bench-smoke TIMEOUT 120)
endfunction()

# helios_fuzzer(name SOURCES … LINK …): a libFuzzer program with HELIOS_FUZZ, else the same input function
# driven over the stored corpus (label fuzz-smoke).
function(helios_fuzzer name)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINK} helios_flags)
  if(HELIOS_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME ${name}.smoke COMMAND ${name} -runs=20000 -max_total_time=20 ${arg_CORPUS})
  else()
    target_sources(${name} PRIVATE "${CMAKE_SOURCE_DIR}/test/fuzz/corpus_main.cpp")
    add_test(NAME ${name}.smoke COMMAND ${name} ${arg_CORPUS})
  endif()
  set_tests_properties(${name}.smoke PROPERTIES LABELS fuzz-smoke TIMEOUT 180)
endfunction()
