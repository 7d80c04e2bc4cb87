// SPDX-License-Identifier: Apache-2.0
#include "sim/cudnn/api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace halfscope::sim {
namespace {

constexpr const char* kOwnFolders = "HALFSCOPE_CUDA_LIBRARIES";

/// Folders that match, in the order of their names, latest first.
void add_matches(const std::string& pattern, std::vector<std::string>& folders) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = found.gl_pathc; i-- > 0;) folders.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

/// As PATH has them.
void add_list(const char* list, const std::string& below, std::vector<std::string>& folders) {
  if (list == nullptr) return;
  const std::string all(list);
  for (std::size_t first = 0; first <= all.size();) {
    const std::size_t end = std::min(all.find(':', first), all.size());
    if (end > first) folders.push_back(all.substr(first, end - first) + below);
    first = end + 1;
  }
}

/// Where libraries may lie; "" is where the dynamic loader looks.
std::vector<std::string> folders_to_search() {
  std::vector<std::string> folders, packages;
  add_list(std::getenv(kOwnFolders), "", folders);
  folders.emplace_back("");
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH", "CUDNN_ROOT"}) {
    for (const char* const part : {"/lib64", "/lib"}) add_list(std::getenv(name), part, folders);
  }
  for (const char* const pattern : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                    "/usr/local/cuda-*/lib64", "/usr/local/cuda-*/lib"}) {
    add_matches(pattern, folders);
  }
  // Python's nvidia-* packages: of an active environment, and of those in the usual places.
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

struct Loaded {
  void* handle = nullptr;
  std::string path;
};

/// RTLD_GLOBAL: what a library needs of another one is found by its name, wherever that one lies.
Loaded open_library(const char* name, const std::vector<std::string>& folders) {
  std::string why;
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return {handle, path};
    const char* const error = dlerror();
    const std::string told = error == nullptr ? "" : error;
    // A file that is there, but cannot be loaded, tells more than one that is not.
    if (why.empty() || told.find("cannot open shared object file: No such") == std::string::npos) {
      why = told;
    }
  }
  throw BackendMissing(fmt::format(
      "{} was found neither by the dynamic loader, nor in the CUDA toolkit, nor in Python's nvidia "
      "packages ({}); install cuDNN 9 and cuBLAS 13, or name their folders in {}",
      name, why, kOwnFolders));
}

template <class Function>
void find(const Loaded& library, const char* name, Function& function) {
  void* const found = dlsym(library.handle, name);
  if (found == nullptr) {
    throw BackendMissing(
        fmt::format("{} has no {}: install cuDNN 9 and cuBLAS 13, or name the folders of "
                    "such in {}",
                    library.path, name, kOwnFolders));
  }
  function = reinterpret_cast<Function>(found);
}

CudaLibraries load() {
  const std::vector<std::string> folders = folders_to_search();
  CudaLibraries libraries;
  // cuDNN and cuBLAS need these two, which lie elsewhere in Python's packages.
  for (const char* const name : {"libcublasLt.so.13", "libnvrtc.so.13"}) {
    try {
      open_library(name, folders);
    } catch (const BackendMissing&) {
      if (std::string_view(name) == "libcublasLt.so.13") throw;
    }
  }
  const Loaded cublas = open_library("libcublas.so.13", folders);
  const Loaded cudnn = open_library("libcudnn.so.9", folders);
  libraries.cublas_path = cublas.path;
  libraries.cudnn_path = cudnn.path;
#define HALFSCOPE_FIND_CUBLAS(name) find(cublas, #name, libraries.cublas.name);
  HALFSCOPE_CUBLAS_FUNCTIONS(HALFSCOPE_FIND_CUBLAS)
#undef HALFSCOPE_FIND_CUBLAS
  find(cublas, "cublasGemmEx", libraries.cublas.cublasGemmEx);
#define HALFSCOPE_FIND_CUDNN(name) find(cudnn, #name, libraries.cudnn.name);
  HALFSCOPE_CUDNN_FUNCTIONS(HALFSCOPE_FIND_CUDNN)
#undef HALFSCOPE_FIND_CUDNN
  return libraries;
}

}  // namespace

const CudaLibraries& load_cuda_libraries() {
  static const CudaLibraries libraries = load();
  return libraries;
}

void check(const CudnnApi& api, cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string words(512, '\0');
  api.cudnnGetLastErrorString(words.data(), words.size());
  words.resize(std::min(words.find('\0'), words.size()));
  std::ranges::replace(words, '\n', ' ');  // an error is one line
  throw std::runtime_error(fmt::format("cuDNN: {}: {}{}{}", call, api.cudnnGetErrorString(status),
                                       words.empty() ? "" : ": ", words));
}

void check(const CublasApi& api, cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("cuBLAS: {}: {}", call, api.cublasGetStatusString(status)));
}

}  // namespace halfscope::sim
