# SPDX-License-Identifier: Apache-2.0
# What every target of ours is compiled with.
option(HALFSCOPE_WERROR "Warnings are errors" OFF)
option(HALFSCOPE_SANITIZE "Address and undefined behaviour sanitizers" OFF)

# Not with ccache: g++ writes a precompiled header in other bytes each time, and nothing would be found.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(HALFSCOPE_PRECOMPILE "Precompile the headers of other libraries that most files include" ${precompile})

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# halfscope_target(NAME): C++20, warnings, and no contraction of a*b+c, which would round once where
# the source says twice. Nor -ffast-math, whatever a project that includes this one sets: it would undo
# the rounding errors that the arrays compute. -Wno-restrict: g++ 12 warns of its own std::string's
# operator+ (GCC bug 105651).
function(halfscope_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -fno-fast-math -ffp-contract=off>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
    $<$<AND:$<BOOL:${HALFSCOPE_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>)
  if(HALFSCOPE_SANITIZE)  # under which g++ 12 warns of std::regex's own std::function
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${name} PUBLIC -fsanitize=address,undefined)
  endif()
  if(HALFSCOPE_FUZZ)  # what libFuzzer goes by; the standard library checks its callers
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
    target_compile_definitions(${name} PRIVATE _GLIBCXX_ASSERTIONS)
    target_link_options(${name} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# halfscope_precompile(NAME HEADER...): for targets of many files. Files with options of their own that
# the compiler's output depends on need SKIP_PRECOMPILE_HEADERS. g++ 12 warns of its own std::string
# where its header is precompiled; builds without keep these warnings.
function(halfscope_precompile name)
  if(HALFSCOPE_PRECOMPILE)
    foreach(header ${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp ${ARGN})
      target_precompile_headers(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${header}>)
    endforeach()
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endfunction()
