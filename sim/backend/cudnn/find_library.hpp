// SPDX-License-Identifier: Apache-2.0
// Search for NVIDIA's libraries in their usual folders.
#pragma once

#include <string>
#include <vector>

namespace halfscope::sim::backend::cudnn {

/// Environment variable with further folders, separated by colons.
inline constexpr const char* kLibraryFolders = "HALFSCOPE_CUDA_LIBRARIES";

/// Returns the folders to search, in order. An empty string means the dynamic loader's own search.
std::vector<std::string> library_folders();

struct LoadedLibrary {
  void* handle = nullptr;
  std::string path;
};

/// Loads the library from the first folder that has it; never unloads it. Throws BackendMissing.
LoadedLibrary open_library(const char* name, const std::vector<std::string>& folders);

}  // namespace halfscope::sim::backend::cudnn
