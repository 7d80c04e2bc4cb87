# SPDX-License-Identifier: Apache-2.0
# For wheels: a folder of static libraries in place of the shared ones. They are built from the same
# sources (tools/wheel.sh), so the headers of the shared ones are theirs.
set(HALFSCOPE_STATIC_LIBRARIES "" CACHE PATH "Folder of static libraries to link; empty: the shared ones")
if(NOT HALFSCOPE_STATIC_LIBRARIES)
  return()
endif()
foreach(library hwy::hwy=hwy TBB::tbb=tbb TBB::tbbmalloc=tbbmalloc
                TBB::tbbmalloc_proxy=tbbmalloc_proxy fmt::fmt=fmt ISAL::isal=isal
                protobuf::libprotobuf=protobuf ZLIB::ZLIB=z BZip2::BZip2=bz2 LibLZMA::LibLZMA=lzma
                LibZip::zip=zip pugixml::shared=pugixml Zstd::zstd=zstd)
  string(REGEX MATCH "(.*)=(.*)" library ${library})
  set_target_properties(${CMAKE_MATCH_1} PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
    IMPORTED_LOCATION_RELEASE ${HALFSCOPE_STATIC_LIBRARIES}/lib${CMAKE_MATCH_2}.a)
endforeach()
target_link_libraries(TBB::tbbmalloc_proxy INTERFACE TBB::tbbmalloc)
target_link_libraries(LibZip::zip INTERFACE BZip2::BZip2 LibLZMA::LibLZMA Zstd::zstd ZLIB::ZLIB)
# Unused parts of the C++ library would need a newer glibc: std::random_device its arc4random.
add_link_options(-static-libstdc++ -Wl,--gc-sections)
