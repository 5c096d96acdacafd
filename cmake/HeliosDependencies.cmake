# Everything comes from Debian 12 by package name; tools/setup.sh installs it.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED CONFIG COMPONENTS headers json)
find_package(spdlog REQUIRED CONFIG)
find_package(CLI11 REQUIRED CONFIG)
find_package(hwy REQUIRED CONFIG)

find_path(HELIOS_CONCURRENTQUEUE_INCLUDE concurrentqueue/concurrentqueue.h REQUIRED)
add_library(helios_concurrentqueue INTERFACE)
target_include_directories(helios_concurrentqueue SYSTEM INTERFACE "${HELIOS_CONCURRENTQUEUE_INCLUDE}")

# By its plain name when linked, so that the installed package names no folder of this machine.
find_path(HELIOS_UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(HELIOS_UTF8PROC utf8proc REQUIRED)

# Asio and Beast are compiled once, here; only .cpp files that do I/O include them.
file(WRITE "${CMAKE_BINARY_DIR}/generated/asio_impl.cpp.in" "#include <boost/asio/impl/src.hpp>\n")
configure_file("${CMAKE_BINARY_DIR}/generated/asio_impl.cpp.in" "${CMAKE_BINARY_DIR}/generated/asio_impl.cpp" COPYONLY)
add_library(helios_asio STATIC "${CMAKE_BINARY_DIR}/generated/asio_impl.cpp")
target_compile_definitions(helios_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_link_libraries(helios_asio PUBLIC Boost::headers Threads::Threads)

if(HELIOS_TESTS)
  find_package(Catch2 3 CONFIG QUIET)
  if(NOT Catch2_FOUND)
    find_package(Catch2 2 REQUIRED CONFIG)
    set(HELIOS_CATCH2_COMPAT "${CMAKE_SOURCE_DIR}/test/compat")  # v3 header names over Debian's v2
  endif()
endif()
