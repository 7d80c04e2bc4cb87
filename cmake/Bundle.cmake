# SPDX-License-Identifier: Apache-2.0
# The folder that ./run bundle makes: programs, and the shared libraries that they need, to be run on
# another machine. Of that one's own are glibc, the C++ library of g++ 12 or later (Debian's needs a
# newer glibc than Ubuntu 22.04 has), the driver, cuDNN and cuBLAS.
if(NOT TARGET test_cudnn)
  message(FATAL_ERROR "./run bundle needs the CUDA compiler and cuDNN 9's headers: set CUDACXX and CUDNN_ROOT")
endif()
set(bundle_programs halfscope test_cuda test_cudnn write_device bench_cuda probe_tensor_core)
foreach(program IN LISTS bundle_programs)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  # An RPATH also leads to what libraries need of each other, a RUNPATH does not.
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
add_custom_target(bundle_programs DEPENDS ${bundle_programs})
install(TARGETS ${bundle_programs} RUNTIME_DEPENDENCY_SET bundle_libraries
        RUNTIME DESTINATION bin COMPONENT bundle)
install(RUNTIME_DEPENDENCY_SET bundle_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+)\\.so"
                            "^lib(cuda|cudart|cudnn|cublas|nvrtc|nvidia)"
        LIBRARY DESTINATION lib COMPONENT bundle)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/gpu/gpu.sh DESTINATION . COMPONENT bundle)
file(GLOB bundle_steps ${PROJECT_SOURCE_DIR}/tools/gpu/*)
list(REMOVE_ITEM bundle_steps ${PROJECT_SOURCE_DIR}/tools/gpu/gpu.sh)
list(FILTER bundle_steps EXCLUDE REGEX "__pycache__")
install(FILES ${bundle_steps} DESTINATION . COMPONENT bundle)
file(GLOB bundle_recording ${PROJECT_SOURCE_DIR}/bench/*recording*.py)
install(FILES ${bundle_recording} DESTINATION bench COMPONENT bundle)
install(FILES ${PROJECT_SOURCE_DIR}/tests/cuda/h100.json DESTINATION data COMPONENT bundle)
