// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/find_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

/// Appends the folders that match, in descending order of names.
void add_matches(const std::string& pattern, std::vector<std::string>& folders) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = found.gl_pathc; i-- > 0;) folders.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

/// Appends the folders of a colon-separated list, each followed by `below`.
void add_list(const char* list, const std::string& below, std::vector<std::string>& folders) {
  if (list == nullptr) return;
  const std::string all(list);
  for (std::size_t first = 0; first <= all.size();) {
    const std::size_t end = std::min(all.find(':', first), all.size());
    if (end > first) folders.push_back(all.substr(first, end - first) + below);
    first = end + 1;
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders, packages;
  add_list(std::getenv(kLibraryFolders), "", folders);
  folders.emplace_back("");
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH", "CUDNN_ROOT"}) {
    for (const char* const part : {"/lib64", "/lib"}) add_list(std::getenv(name), part, folders);
  }
  for (const char* const pattern : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                    "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/lib"}) {
    add_matches(pattern, folders);
  }
  // Python's nvidia-* packages, in the active environment and in the usual environments.
  add_list(std::getenv("VIRTUAL_ENV"), "/lib/python3*", packages);
  add_list(std::getenv("CONDA_PREFIX"), "/lib/python3*", packages);
  for (const char* const place :
       {"/usr/local/lib/python3*", "/usr/lib/python3*", "/opt/*/lib/python3*",
        "/opt/*/.venv/lib/python3*", "/opt/*/venv/lib/python3*"}) {
    packages.emplace_back(place);
  }
  for (const std::string& place : packages) {
    add_matches(place + "/*-packages/nvidia/*/lib", folders);
  }
  return folders;
}

/// RTLD_GLOBAL makes the symbols available to the libraries that depend on them, in any folder.
LoadedLibrary open_library(const char* name, const std::vector<std::string>& folders) {
  std::string why;
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return {handle, path};
    const char* const error = dlerror();
    const std::string told = error == nullptr ? "" : error;
    // An error of an existing file is more useful than that a file does not exist.
    if (why.empty() || told.find("cannot open shared object file: No such") == std::string::npos) {
      why = told;
    }
  }
  throw BackendMissing(fmt::format(
      "{} was found neither by the dynamic loader, nor in the CUDA toolkit, nor in Python's nvidia "
      "packages ({}); install cuDNN 9 and cuBLAS 13, or name their folders in {}",
      name, why, kLibraryFolders));
}

}  // namespace halfscope::sim::backend::cudnn
