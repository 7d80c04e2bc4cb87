// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, found where people have them.
#pragma once

#include <string>
#include <vector>

namespace halfscope::sim::backend::cudnn {

/// The variable that names more folders, as PATH does.
inline constexpr const char* kLibraryFolders = "HALFSCOPE_CUDA_LIBRARIES";

/// Where libraries may lie; "" is where the dynamic loader looks.
std::vector<std::string> library_folders();

struct LoadedLibrary {
  void* handle = nullptr;
  std::string path;
};

/// From the first folder that has it. Never unloaded. Throws BackendMissing.
LoadedLibrary open_library(const char* name, const std::vector<std::string>& folders);

}  // namespace halfscope::sim::backend::cudnn
