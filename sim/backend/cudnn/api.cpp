// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/backend/cudnn/find_library.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

template <class Function>
void find(const LoadedLibrary& library, const char* name, Function& function) {
  void* const found = dlsym(library.handle, name);
  if (found == nullptr) {
    throw BackendMissing(
        fmt::format("{} has no {}: install cuDNN 9 and cuBLAS 13, or name the folders of "
                    "such in {}",
                    library.path, name, kLibraryFolders));
  }
  function = reinterpret_cast<Function>(found);
}

CudaLibraries load() {
  const std::vector<std::string> folders = library_folders();
  CudaLibraries libraries;
  // cuDNN and cuBLAS depend on these two, which are in other folders of Python's packages.
  for (const char* const name : {"libcublasLt.so.13", "libnvrtc.so.13"}) {
    try {
      open_library(name, folders);
    } catch (const BackendMissing&) {
      if (std::string_view(name) == "libcublasLt.so.13") throw;
    }
  }
  const LoadedLibrary cublas = open_library("libcublas.so.13", folders);
  const LoadedLibrary cudnn = open_library("libcudnn.so.9", folders);
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
  std::ranges::replace(words, '\n', ' ');  // an error message is one line
  throw std::runtime_error(fmt::format("cuDNN: {}: {}{}{}", call, api.cudnnGetErrorString(status),
                                       words.empty() ? "" : ": ", words));
}

void check(const CublasApi& api, cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("cuBLAS: {}: {}", call, api.cublasGetStatusString(status)));
}

}  // namespace halfscope::sim::backend::cudnn
