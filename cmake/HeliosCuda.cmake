# CUDA is optional: AUTO looks for the toolkit, ON requires it, OFF never looks. This version has no CUDA code: what is
# found is reported, and a build without the toolkit is complete.
# Sets HELIOS_CUDA_FOUND, and then HELIOS_NVCC and HELIOS_CUDA_VERSION.
set(HELIOS_CUDA AUTO CACHE STRING "AUTO, ON or OFF")
set_property(CACHE HELIOS_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HELIOS_CUDA_VERSION_MIN 13.0)
set(HELIOS_CUDA_FOUND FALSE)

if(NOT HELIOS_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HELIOS_CUDA is '${HELIOS_CUDA}': use AUTO, ON or OFF.")
endif()

if(HELIOS_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: off (HELIOS_CUDA=OFF)")
else()
  set(helios_cuda_problem "")
  # Not check_language(CUDA): it drops the host compiler (CMake 3.25).
  find_program(HELIOS_NVCC nvcc HINTS "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin)
  if(NOT HELIOS_NVCC)
    set(helios_cuda_problem "nvcc was not found on PATH, in CUDA_PATH or in /usr/local/cuda")
  else()
    execute_process(COMMAND "${HELIOS_NVCC}" --version OUTPUT_VARIABLE helios_nvcc_says ERROR_QUIET RESULT_VARIABLE helios_nvcc_status)
    string(REGEX MATCH "V([0-9]+\\.[0-9]+\\.[0-9]+)" helios_nvcc_match "${helios_nvcc_says}")
    set(HELIOS_CUDA_VERSION "${CMAKE_MATCH_1}")
    if(NOT helios_nvcc_status EQUAL 0 OR NOT HELIOS_CUDA_VERSION)
      set(helios_cuda_problem "${HELIOS_NVCC} --version does not run")
    elseif(HELIOS_CUDA_VERSION VERSION_LESS HELIOS_CUDA_VERSION_MIN)
      set(helios_cuda_problem "${HELIOS_NVCC} is ${HELIOS_CUDA_VERSION}, and ${HELIOS_CUDA_VERSION_MIN} is the oldest supported")
    else()
      get_filename_component(helios_cuda_root "${HELIOS_NVCC}" REALPATH)
      get_filename_component(helios_cuda_root "${helios_cuda_root}" DIRECTORY)
      get_filename_component(helios_cuda_root "${helios_cuda_root}" DIRECTORY)
      # Not FindCUDAToolkit alone: it wants a driver library that build machines lack.
      find_path(HELIOS_CUDA_INCLUDE cuda_runtime_api.h HINTS "${helios_cuda_root}/include" "${helios_cuda_root}/targets/x86_64-linux/include"
        NO_DEFAULT_PATH)
      find_library(HELIOS_CUDART cudart_static HINTS "${helios_cuda_root}/lib64" "${helios_cuda_root}/lib"
        "${helios_cuda_root}/targets/x86_64-linux/lib" NO_DEFAULT_PATH)
      if(NOT HELIOS_CUDA_INCLUDE OR NOT HELIOS_CUDART)
        set(helios_cuda_problem "${helios_cuda_root} has nvcc but lacks cuda_runtime_api.h or libcudart_static.a")
      endif()
    endif()
  endif()

  if(helios_cuda_problem)
    if(HELIOS_CUDA STREQUAL "ON")
      message(FATAL_ERROR "HELIOS_CUDA=ON: ${helios_cuda_problem}. Install the CUDA ${HELIOS_CUDA_VERSION_MIN} toolkit, or configure "
                          "with HELIOS_CUDA=AUTO.")
    endif()
    message(STATUS "CUDA: none (${helios_cuda_problem})")
  else()
    set(HELIOS_CUDA_FOUND TRUE)
    message(STATUS "CUDA: nvcc ${HELIOS_CUDA_VERSION} at ${HELIOS_NVCC}, runtime ${HELIOS_CUDART}; this version has no CUDA code")
  endif()
endif()
