# SPDX-License-Identifier: Apache-2.0
# The numbers library as a CMake package: `cmake --install BUILD --component library` installs it
# alone. halfscope_numbers becomes halfscope::halfscope, and the GPU twins, where they are built,
# halfscope::cuda, an optional component with an export file of its own.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/halfscope)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/halfscope/number ${PROJECT_SOURCE_DIR}/lib/halfscope/policy
                  ${PROJECT_SOURCE_DIR}/lib/halfscope/reduction ${PROJECT_SOURCE_DIR}/lib/halfscope/table
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfscope COMPONENT library
        FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/halfscope/array  # the rest is its sources' own
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfscope COMPONENT library
        FILES_MATCHING PATTERN "array*.hpp" PATTERN "element.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/halfscope/block
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfscope COMPONENT library
        FILES_MATCHING PATTERN "*.hpp" PATTERN "tile.hpp" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/halfscope/tensor_core
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfscope COMPONENT library
        FILES_MATCHING PATTERN "*.hpp" PATTERN "gemm_*.hpp" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/lib/halfscope/halfscope.hpp
              ${PROJECT_BINARY_DIR}/lib/halfscope/version.hpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfscope COMPONENT library)

set_target_properties(halfscope_numbers PROPERTIES EXPORT_NAME halfscope)
install(TARGETS halfscope_numbers EXPORT halfscope-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT halfscope-targets NAMESPACE halfscope::
        DESTINATION ${package_folder} COMPONENT library)

if(TARGET halfscope_cuda)
  set_target_properties(halfscope_cuda PROPERTIES EXPORT_NAME cuda)
  install(TARGETS halfscope_cuda EXPORT halfscope-cuda-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(EXPORT halfscope-cuda-targets NAMESPACE halfscope::
          DESTINATION ${package_folder} COMPONENT library)
endif()

# Before 1.0 a minor version may change the interface.
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/halfscope-config.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/halfscope-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/halfscope-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/halfscope-config.cmake
              ${PROJECT_BINARY_DIR}/cmake/halfscope-config-version.cmake
        DESTINATION ${package_folder} COMPONENT library)
