// SPDX-License-Identifier: Apache-2.0
// The backend on an NVIDIA GPU. cuDNN computes convolutions and pooling; cuBLAS computes
// products; the kernels in kernels/ compute the rest. As in the CPU backend, each
// operation reads and writes tensors of the 16-bit type. Each group of operations is defined in a
// file of its own.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"
#include "sim/backend/cudnn/convolution_plan.hpp"
#include "sim/backend/cudnn/device.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn {

/// The factors alpha and beta of cuDNN's calls. They are binary32 for 16-bit tensors also.
inline constexpr float kOne = 1, kZero = 0;

class CudnnBackend final : public Backend {
 public:
  CudnnBackend(const CudaLibraries& libraries, Accumulation accumulation);

  // backend.cpp
  std::string describe() const override;
  nlohmann::json details() const override;
  Tensor make(const Shape& shape, Dtype dtype) override;
  Tensor allocate_uninitialized(const Shape& shape, Dtype dtype) override;
  void set(Tensor& to, std::span<const float> values) override;
  std::vector<float> get(const Tensor& from) override;
  void copy(const Tensor& from, Tensor& to) override;
  void fill(Tensor& to, float value) override;

  // statistics.cpp
  GradientFacts facts(std::span<const Tensor> gradients) override;
  Later<std::vector<GradientFacts>> facts_later(std::span<const Tensor> gradients) override;
  BinadeTable count(const Tensor& tensor) override;
  Moments moments(const Tensor& tensor) override;
  Later<std::vector<TensorStatistics>> statistics_later(std::span<const Tensor> tensors) override;

  // convolution.cpp
  void conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& b,
                    Tensor& y) override;
  void conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                          Tensor& dx) override;
  void conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy, Tensor& dw,
                            bool add) override;

  // dense.cpp
  void dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) override;
  void dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) override;
  void dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) override;
  void bias_gradient(const Tensor& dy, Tensor& db, bool add) override;

  // layers.cpp
  void batch_norm_forward(const Tensor& x, BatchNormParameters& parameters, bool inference,
                          BatchNormSaved& saved, Tensor& y) override;
  void batch_norm_backward(const Tensor& x, const Tensor& dy, const BatchNormParameters& parameters,
                           const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma, Tensor& dbeta,
                           bool add) override;
  void pool_forward(const Pool& pool, const Tensor& x, Tensor& y) override;
  void pool_backward(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& dy,
                     Tensor& dx) override;

  // own.cpp
  void relu_forward(const Tensor& x, Tensor& y) override;
  void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) override;
  void add(const Tensor& a, const Tensor& b, Tensor& y) override;
  void multiply(const Tensor& x, double factor, Tensor& y) override;
  void join(std::span<const Tensor> parts, Tensor& y) override;
  void split(const Tensor& dy, std::span<Tensor> parts) override;
  void lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) override;
  void lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c, const Tensor& dh,
                     Tensor& dc, Tensor& dgates) override;
  void embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) override;
  void embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                      bool add) override;
  double softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                               double factor, Tensor& dlogits) override;
  double smooth_l1(const Tensor& x, std::span<const float> target,
                   std::span<const std::uint8_t> mask, double factor, Tensor& dx) override;
  void update(const UpdateRule& rule, const Tensor& gradient, double unscale, Tensor& weight,
              std::span<Tensor> state, Tensor& delta) override;

 private:
  ConvolutionPlan& plan_of(const Convolution& conv, const Tensor& x, const Tensor& w,
                           const Tensor& y);
  struct Product;
  void multiply(const Product& product);
  /// Copies host memory to the device in stream order. The host memory may be changed on return.
  template <class T>
  cuda::DeviceMemory upload(std::span<const T> values);
  /// Returns the sum of `count` floats in device memory, in order, in binary64. Waits.
  double sum_in_order(const cuda::DeviceMemory& losses, std::size_t count);

  cudaStream_t stream() const { return device_->stream(); }
  const CudnnApi& api() const { return device_->libraries().cudnn; }

  std::shared_ptr<Device> device_;
  Accumulation accumulation_;
  std::map<ConvolutionKey, std::unique_ptr<ConvolutionPlan>> plans_;
};

/// Returns a tensor's memory as kernels receive it.
inline backend::cudnn::kernels::Elements elements_of(const Tensor& tensor) {
  return {tensor.dtype, device_data(tensor)};
}

}  // namespace halfscope::sim::backend::cudnn
