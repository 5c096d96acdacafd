# What a program that embeds HELIOS links: helios::helios, from this build (add_subdirectory) or installed
# (find_package(helios)). Headers are included by their path in the source tree, `#include <helios.hpp>` first of all.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

helios_library(helios SOURCES helios/engine.cpp PUBLIC_LINK helios_actors)
target_include_directories(helios PUBLIC "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/helios>")
add_library(helios::helios ALIAS helios)

set(helios_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/helios")
install(TARGETS helios helios_runtime helios_gpu helios_model helios_actors helios_asio helios_concurrentqueue
  EXPORT helios-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT helios-targets NAMESPACE helios:: DESTINATION "${helios_package_dir}")
install(FILES helios.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/helios")
foreach(folder helios actors model gpu runtime)
  install(DIRECTORY "${folder}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/helios/${folder}" FILES_MATCHING PATTERN "*.hpp")
endforeach()

file(WRITE "${CMAKE_BINARY_DIR}/helios-config.cmake" [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(Boost 1.81 CONFIG COMPONENTS headers json)
find_dependency(spdlog CONFIG)
find_dependency(hwy CONFIG)
include("${CMAKE_CURRENT_LIST_DIR}/helios-targets.cmake")
]])
write_basic_package_version_file("${CMAKE_BINARY_DIR}/helios-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/helios-config.cmake" "${CMAKE_BINARY_DIR}/helios-config-version.cmake"
  DESTINATION "${helios_package_dir}")

if(HELIOS_TESTS)
  add_subdirectory(test/embedding)
  add_subdirectory(test/tools)
endif()
