// SPDX-License-Identifier: Apache-2.0
// Batch normalisation and pooling by cuDNN. Uses CUDNN_BATCHNORM_SPATIAL: the persistent mode
// "imposes some limits on the range of values", says cuDNN's header. The gradient of max pooling
// has its own kernel: if several values are the largest, cuDNN does not specify which gets the
// gradient, and after a ReLU most windows of zeros are such. The kernel follows the rule of PyTorch
// and the emulation.
#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend::cudnn {
namespace {

constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;

/// Describes gamma, beta and statistics: binary32, one value per channel.
struct ChannelDescriptor : TensorHandle {
  ChannelDescriptor(const CudnnApi& api, const TensorDescriptor& x) : TensorHandle(api) {
    check(api, api.cudnnDeriveBNTensorDescriptor(*this, x, kMode), "cudnnDeriveBNTensorDescriptor");
  }
};

/// Returns the extents (N, H, W, C) of images, or of rows (M, C) as images of one pixel.
Shape as_rows_or_images(const Tensor& x) {
  if (x.shape.size() == 4) return x.shape;
  return {x.size() / x.shape.back(), x.shape.back()};
}

}  // namespace

void CudnnBackend::batch_norm_forward(const Tensor& x, BatchNormParameters& parameters,
                                      bool inference, BatchNormSaved& saved, Tensor& y) {
  const std::int64_t channels = parameters.gamma.size();
  if (!inference) require_variance(x.size() / channels);
  if (!saved.mean) saved.mean = allocate_uninitialized({channels}, Dtype::f32);
  if (!saved.inverse_deviation)
    saved.inverse_deviation = allocate_uninitialized({channels}, Dtype::f32);
  const TensorDescriptor images(api(), x.dtype, as_rows_or_images(x));
  const ChannelDescriptor channel(api(), images);
  void *gamma = device_data(parameters.gamma), *beta = device_data(parameters.beta),
       *mean = device_data(parameters.running_mean),
       *variance = device_data(parameters.running_variance);
  if (inference) {
    device_->check(api().cudnnBatchNormalizationForwardInference(
                       device_->cudnn(), kMode, &kOne, &kZero, images, device_data(x), images,
                       device_data(y), channel, gamma, beta, mean, variance, parameters.epsilon),
                   "cudnnBatchNormalizationForwardInference");
    return;
  }
  device_->check(
      api().cudnnBatchNormalizationForwardTraining(
          device_->cudnn(), kMode, &kOne, &kZero, images, device_data(x), images, device_data(y),
          channel, gamma, beta, parameters.momentum, mean, variance, parameters.epsilon,
          device_data(saved.mean), device_data(saved.inverse_deviation)),
      "cudnnBatchNormalizationForwardTraining");
}

void CudnnBackend::batch_norm_backward(const Tensor& x, const Tensor& dy,
                                       const BatchNormParameters& parameters,
                                       const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                       Tensor& dbeta, bool add) {
  const TensorDescriptor images(api(), x.dtype, as_rows_or_images(x));
  const ChannelDescriptor channel(api(), images);
  device_->check(
      api().cudnnBatchNormalizationBackward(
          device_->cudnn(), kMode, &kOne, &kZero, &kOne, add ? &kOne : &kZero, images,
          device_data(x), images, device_data(dy), images, device_data(dx), channel,
          device_data(parameters.gamma), device_data(dgamma), device_data(dbeta),
          parameters.epsilon, device_data(saved.mean), device_data(saved.inverse_deviation)),
      "cudnnBatchNormalizationBackward");
}

void CudnnBackend::pool_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  const TensorDescriptor in(api(), x.dtype, x.shape), out(api(), y.dtype, y.shape);
  const PoolingDescriptor pooling(api(), pool);
  device_->check(api().cudnnPoolingForward(device_->cudnn(), pooling, &kOne, in, device_data(x),
                                           &kZero, out, device_data(y)),
                 "cudnnPoolingForward");
}

void CudnnBackend::pool_backward(const Pool& pool, const Tensor& x, const Tensor& y,
                                 const Tensor& dy, Tensor& dx) {
  if (pool.kind == Pool::Kind::max) {
    const backend::cudnn::kernels::Windows windows{pool.kernel, pool.stride, x.shape[0],
                                                   x.shape[1],  x.shape[2],  x.shape[3],
                                                   dy.shape[1], dy.shape[2]};
    require_same_dtype("a pool", {x, dy, dx});
    return backend::cudnn::kernels::max_pool_backward(windows, elements_of(x), elements_of(dy),
                                                      elements_of(dx), stream());
  }
  const TensorDescriptor in(api(), x.dtype, x.shape), out(api(), y.dtype, y.shape);
  const PoolingDescriptor pooling(api(), pool);
  device_->check(
      api().cudnnPoolingBackward(device_->cudnn(), pooling, &kOne, out, device_data(y), out,
                                 device_data(dy), in, device_data(x), &kZero, in, device_data(dx)),
      "cudnnPoolingBackward");
}

}  // namespace halfscope::sim::backend::cudnn
