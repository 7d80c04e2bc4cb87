# SPDX-License-Identifier: Apache-2.0
# What every target of ours is compiled with.
option(HALFSCOPE_WERROR "Warnings are errors" OFF)
option(HALFSCOPE_SANITIZE "Address and undefined behaviour sanitizers" OFF)

# Most of a file's compile time is its headers: 12 files in one unit share them, and a build takes a
# quarter of the time. The developers' preset is without: there a changed file is compiled alone.
option(HALFSCOPE_UNITY "Compile the files of a target in batches of 12" ${PROJECT_IS_TOP_LEVEL})
set(CMAKE_UNITY_BUILD ${HALFSCOPE_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# halfscope_optimise(TARGET LEVEL): for release builds. Where no loop over a tensor's elements stands,
# the third level takes a third of the compile time and saves no time of a run.
function(halfscope_optimise target level)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>,$<CONFIG:Release>>:-O${level}>)
endfunction()

# halfscope_target(NAME): C++20, warnings, and no contraction of a*b+c, which would round once where
# the source says twice. Nor -ffast-math, whatever a project that includes this one sets: it would undo
# the rounding errors that the arrays compute. -Wno-restrict: g++ 12 warns of its own std::string's
# operator+ (GCC bug 105651).
function(halfscope_target name)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -fno-fast-math -ffp-contract=off>
    # In a batch a local name shadows names of other files, which is no fault.
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:${HALFSCOPE_UNITY}>>>:-Wshadow>
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
