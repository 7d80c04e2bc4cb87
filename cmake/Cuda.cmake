# SPDX-License-Identifier: Apache-2.0
# CUDA where it is found, an error only when asked for. Sets HALFSCOPE_HAS_CUDA.
set(HALFSCOPE_HAS_CUDA OFF)
if(NOT HALFSCOPE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)  # stated, so a build machine needs no GPU
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc 13's flag
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(HALFSCOPE_HAS_CUDA ON)
  elseif(HALFSCOPE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HALFSCOPE_CUDA=ON but no CUDA compiler was found; set CUDACXX or use AUTO")
  endif()
endif()
