# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILD=... -D SOURCE=... -D WORK=... [-D GENERATOR, COMPILER, LAUNCHER, BUILD_TYPE, VERSION]
#       -P test_package.cmake
# Installs the library alone into WORK, lets the project beside this file find, build and run it; then
# configures that project with the source tree as a part of it.
foreach(variable BUILD SOURCE WORK GENERATOR COMPILER VERSION)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "test_package.cmake: -D ${variable}=... is missing")
  endif()
endforeach()

function(do)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
do(${CMAKE_COMMAND} --install ${BUILD} --component library --prefix ${WORK}/installed)

# Relocatable: no installed text names a folder of this machine. What is moved must work.
file(RENAME ${WORK}/installed ${WORK}/moved)
file(GLOB_RECURSE installed ${WORK}/moved/*)
foreach(file IN LISTS installed)
  if(file MATCHES "\\.(hpp|cmake)$")
    file(READ ${file} text)
    foreach(folder ${BUILD} ${SOURCE} ${WORK})
      string(FIND "${text}" "${folder}/" place)
      if(NOT place EQUAL -1)
        message(FATAL_ERROR "${file} names ${folder}")
      endif()
    endforeach()
  elseif(NOT file MATCHES "\\.a$")
    message(FATAL_ERROR "the library's component installs ${file}")
  endif()
endforeach()

set(common -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER})
do(${CMAKE_COMMAND} ${common} -B ${WORK}/find_package -DCMAKE_PREFIX_PATH=${WORK}/moved
   -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DHALFSCOPE_VERSION=${VERSION})
do(${CMAKE_COMMAND} --build ${WORK}/find_package)
do(${WORK}/find_package/user)
if(EXISTS ${WORK}/find_package/opt_in)
  do(${WORK}/find_package/opt_in)
endif()
do(${WORK}/find_package/example)

# docs/cpp.md shows that example, and what it prints.
file(READ ${SOURCE}/docs/cpp.md page)
file(READ ${SOURCE}/docs/examples/library.cpp example)
string(REGEX REPLACE "^// SPDX[^\n]*\n" "" example "${example}")
foreach(part "${example}" "${output}")
  string(FIND "${page}" "${part}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "docs/cpp.md lacks this:\n${part}")
  endif()
endforeach()

do(${CMAKE_COMMAND} ${common} -B ${WORK}/add_subdirectory -DHALFSCOPE_SOURCE=${SOURCE})
message(STATUS "halfscope::halfscope ${VERSION}: installed, moved, found, linked, run")
