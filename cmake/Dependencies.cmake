# SPDX-License-Identifier: Apache-2.0
# Every library that Halfscope is built with, found once. Where one is missing, the message says what
# to install.

include(${CMAKE_CURRENT_LIST_DIR}/Missing.cmake)

# halfscope_need(NEED PACKAGE ...): find_package(PACKAGE ...) for what ./run calls NEED.
macro(halfscope_need need package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    string(JOIN " " wanted ${package} ${ARGN})
    string(REGEX REPLACE " (NO_MODULE|COMPONENTS).*" "" wanted "${wanted}")
    halfscope_missing(${need} "${wanted}")
  endif()
endmacro()

halfscope_need(build HWY)
halfscope_need(build TBB)
if(NOT HALFSCOPE_LIBRARY_ONLY)
  halfscope_need(build Boost)  # headers only: Endian, Multiprecision, base64
  halfscope_need(build Eigen3 3.4 NO_MODULE)
  halfscope_need(build fmt)
  halfscope_need(build ISAL)   # CRC-32C
  halfscope_need(build nlohmann_json 3.11)
  halfscope_need(build Protobuf)
  halfscope_need(build ZLIB)
  if(HALFSCOPE_TOOLS)
    halfscope_need(build BZip2)  # with these and zlib, compressed logs
    halfscope_need(build CLI11)
    halfscope_need(build LibLZMA)
    halfscope_need(build LibZip)
    halfscope_need(build pugixml)
    halfscope_need(build Zstd)
  endif()
  if(HALFSCOPE_HAS_CUDA)
    find_package(CUDNN 9)
  endif()
  if(HALFSCOPE_PYTHON_MODULE)
    halfscope_need(build Python 3.9 COMPONENTS Interpreter Development.Module)
  endif()
  if(HALFSCOPE_TESTS)
    halfscope_need(test Catch2)
    find_package(Threads REQUIRED)
  endif()
  if(HALFSCOPE_BENCH)
    halfscope_need(bench Imath)
  endif()
endif()
include(Static)
