// SPDX-License-Identifier: Apache-2.0
#include "cuda/tensor_core/cublas_lt.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "sim/backend/cudnn/find_library.hpp"

namespace probe {

#define PROBE_CUBLAS_LT_FUNCTIONS(X)      \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoConfigGetAttribute) \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)

struct CublasLt::Api {
#define PROBE_MEMBER(name) decltype(&::name) name = nullptr;
  PROBE_CUBLAS_LT_FUNCTIONS(PROBE_MEMBER)
#undef PROBE_MEMBER
  std::string path;
};

namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("{}: status {}", call, static_cast<int>(status)));
}

template <class Function>
void find(const halfscope::sim::backend::cudnn::LoadedLibrary& library, const char* name,
          Function& function) {
  function = reinterpret_cast<Function>(dlsym(library.handle, name));
  if (function == nullptr) throw std::runtime_error(library.path + " has no " + name);
}

}  // namespace

CublasLt::CublasLt() : api_(std::make_unique<Api>()) {
  const halfscope::sim::backend::cudnn::LoadedLibrary library =
      halfscope::sim::backend::cudnn::open_library(
          "libcublasLt.so.13", halfscope::sim::backend::cudnn::library_folders());
  api_->path = library.path;
#define PROBE_FIND(name) find(library, #name, api_->name);
  PROBE_CUBLAS_LT_FUNCTIONS(PROBE_FIND)
#undef PROBE_FIND
  check(api_->cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() { api_->cublasLtDestroy(handle_); }

std::string CublasLt::version() const {
  return fmt::format("{} ({})", api_->cublasLtGetVersion(), api_->path);
}

/// Descriptors of one product. cuBLAS has columns where we have rows: it is asked for the
/// transposed product, B's side first.
struct CublasLt::Call {
  const Api& api;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t b = nullptr, a = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

  Call(const Api& functions, const GemmShape& shape, const GemmLimits& limits, Accumulator out)
      : api(functions) {
    const auto m = static_cast<std::uint64_t>(shape.m), n = static_cast<std::uint64_t>(shape.n),
               k = static_cast<std::uint64_t>(shape.k);
    const auto stored = out == Accumulator::binary16 ? CUDA_R_16F : CUDA_R_32F;
    check(api.cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    if (shape.transposed) {
      const cublasOperation_t transposed = CUBLAS_OP_T;
      check(api.cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                               sizeof transposed),
            "CUBLASLT_MATMUL_DESC_TRANSA");
      layout(b, CUDA_R_16F, k, n);
    } else {
      layout(b, CUDA_R_16F, n, k);
    }
    layout(a, CUDA_R_16F, k, m);
    layout(d, stored, n, m);
    check(api.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{limits.workspace});
    if (limits.no_reduction) {
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (preference != nullptr) api.cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t const one : {a, b, d}) {
      if (one != nullptr) api.cublasLtMatrixLayoutDestroy(one);
    }
    if (operation != nullptr) api.cublasLtMatmulDescDestroy(operation);
  }

  void layout(cublasLtMatrixLayout_t& out, cudaDataType type, std::uint64_t rows,
              std::uint64_t columns) const {
    check(
        api.cublasLtMatrixLayoutCreate(&out, type, rows, columns, static_cast<std::int64_t>(rows)),
        "cublasLtMatrixLayoutCreate");
  }

  template <typename Value>
  void prefer(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) const {
    check(api.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }

  template <typename Value>
  void read(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
            Value& value) const {
    std::size_t written = 0;
    check(api.cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value,
                                                   &written),
          "cublasLtMatmulAlgoConfigGetAttribute");
  }

  GemmConfig config(const cublasLtMatmulAlgo_t& algorithm) const {
    GemmConfig out;
    read(algorithm, CUBLASLT_ALGO_CONFIG_ID, out.algorithm);
    read(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, out.tile);
    read(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, out.slices);
    read(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, out.reduction);
    read(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, out.swizzle);
    read(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, out.custom);
    read(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, out.stages);
    read(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, out.inner_shape);
    read(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, out.cluster_shape);
    return out;
  }
};

GemmConfig CublasLt::multiply(const GemmShape& shape, const GemmLimits& limits, Accumulator out,
                              const void* a, const void* b, void* d, void* workspace) {
  const Call call(*api_, shape, limits, out);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(api_->cublasLtMatmulAlgoGetHeuristic(handle_, call.operation, call.b, call.a, call.d,
                                             call.d, call.preference, 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) throw std::runtime_error("cublasLtMatmulAlgoGetHeuristic: found nothing");
  const float one = 1, zero = 0;
  check(api_->cublasLtMatmul(handle_, call.operation, &one, b, call.b, a, call.a, &zero, d, call.d,
                             d, call.d, &found.algo, workspace, limits.workspace, nullptr),
        "cublasLtMatmul");
  return call.config(found.algo);
}

}  // namespace probe
