// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/backend.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>

#include "halfscope/array/array.hpp"
#include "sim/backend/check_shapes.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

std::size_t width_of(Dtype dtype) { return static_cast<std::size_t>(format_of(dtype).width / 8); }

std::string version_text(std::size_t version) {  // 91900: "9.19.0"
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

cudaDeviceProp properties() {
  cudaDeviceProp of{};
  cuda::check(cudaGetDeviceProperties(&of, 0), "cudaGetDeviceProperties");
  return of;
}

}  // namespace

CudnnBackend::CudnnBackend(const CudaLibraries& libraries, Accumulation accumulation)
    : device_(std::make_shared<Device>(libraries)), accumulation_(accumulation) {}

std::string CudnnBackend::describe() const {
  const cudaDeviceProp device = properties();
  return fmt::format("cudnn: {} (sm_{}{}), cuDNN {}", device.name, device.major, device.minor,
                     version_text(api().cudnnGetVersion()));
}

nlohmann::json CudnnBackend::details() const {
  int driver = 0, runtime = 0, blas = 0;
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  device_->check(device_->libraries().cublas.cublasGetVersion_v2(device_->cublas(), &blas),
                 "cublasGetVersion");
  const cudaDeviceProp device = properties();
  nlohmann::json convolutions = nlohmann::json::array();
  for (const auto& [key, plan] : plans_) convolutions.push_back(plan->to_json());
  return {{"device", device.name},
          {"multiprocessors", device.multiProcessorCount},
          {"memory_bytes", device.totalGlobalMem},
          {"cuda_driver", fmt::format("{}.{}", driver / 1000, driver % 1000 / 10)},
          {"cuda_runtime", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10)},
          {"cudnn", version_text(api().cudnnGetVersion())},
          {"cudnn_file", device_->libraries().cudnn_path},
          {"cublas", version_text(static_cast<std::size_t>(blas))},
          {"cublas_file", device_->libraries().cublas_path},
          {"convolutions", convolutions}};
}

Tensor CudnnBackend::allocate_uninitialized(const Shape& shape, Dtype dtype) {
  require_tensor(shape, dtype);
  const std::int64_t count = elements(shape);
  const std::size_t bytes = static_cast<std::size_t>(count) * width_of(dtype);
  return {shape, dtype, std::make_shared<DeviceStorage>(device_, count, bytes)};
}

Tensor CudnnBackend::make(const Shape& shape, Dtype dtype) {
  Tensor made = allocate_uninitialized(shape, dtype);
  if (made.size() != 0) {
    cuda::check(cudaMemsetAsync(device_data(made), 0,
                                static_cast<std::size_t>(made.size()) * width_of(dtype), stream()),
                "cudaMemsetAsync");
  }
  return made;
}

void CudnnBackend::set(Tensor& to, std::span<const float> values) {
  void* const target = device_data(to);
  if (std::ssize(values) != to.size()) {
    throw std::invalid_argument(fmt::format("sim: a tensor that is set needs {} values, found {}",
                                            to.size(), values.size()));
  }
  if (values.empty()) return;
  const std::size_t bytes = values.size() * width_of(to.dtype);
  device_->send(target, bytes, [&](void* memory) {
    if (to.dtype == Dtype::f32) {
      std::memcpy(memory, values.data(), bytes);
    } else {
      convert(format_of(to.dtype), values,
              std::span(static_cast<std::uint16_t*>(memory), values.size()));
    }
  });
}

std::vector<float> CudnnBackend::get(const Tensor& from) {
  const void* const source = device_data(from);
  std::vector<float> values(static_cast<std::size_t>(from.size()));
  if (values.empty()) return values;
  const auto fetch = [&](void* to) {
    cuda::check(cudaMemcpyAsync(to, source, values.size() * width_of(from.dtype),
                                cudaMemcpyDeviceToHost, stream()),
                "cudaMemcpyAsync");
    device_->wait();
  };
  if (from.dtype == Dtype::f32) {
    fetch(values.data());
  } else {
    std::vector<std::uint16_t> narrow(values.size());
    fetch(narrow.data());
    convert(format_of(from.dtype), narrow, values);
  }
  return values;
}

void CudnnBackend::copy(const Tensor& from, Tensor& to) {
  if (from.size() != to.size()) {
    throw std::invalid_argument(
        fmt::format("sim: a copy needs {} values, found {}", to.size(), from.size()));
  }
  kernels::copy(elements_of(from), elements_of(to), to.size(), stream());
}

void CudnnBackend::fill(Tensor& to, float value) {
  kernels::fill(elements_of(to), to.size(), value, stream());
}

}  // namespace halfscope::sim::backend::cudnn
