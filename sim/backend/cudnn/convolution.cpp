// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN. The output is filled with the bias first; cuDNN adds the sums to it before
// its single rounding (beta = 1).
#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend::cudnn {

ConvolutionPlan& CudnnBackend::plan_of(const Convolution& conv, const Tensor& x, const Tensor& w,
                                       const Tensor& y) {
  require_convolution(conv, x.shape, w.shape, y.shape);
  require_same_dtype("a convolution", {x, w, y});
  std::unique_ptr<ConvolutionPlan>& plan = plans_[{conv, x.shape, w.shape, x.dtype}];
  if (!plan) {
    plan = std::make_unique<ConvolutionPlan>(
        api(), device_->cudnn(), ConvolutionKey{conv, x.shape, w.shape, x.dtype}, accumulation_);
  }
  return *plan;
}

void CudnnBackend::conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w,
                                const Tensor& b, Tensor& y) {
  ConvolutionPlan& plan = plan_of(conv, x, w, y);
  const auto& chosen = plan.forward();
  if (b) {
    require_bias(b, w.shape[0]);
    backend::cudnn::kernels::fill_rows(elements_of(b), elements_of(y), y.size() / w.shape[0],
                                       w.shape[0], stream());
  }
  const ConvolutionDescriptor descriptor(api(), conv, chosen.compute, chosen.math);
  device_->check(api().cudnnConvolutionForward(
                     device_->cudnn(), &kOne, plan.x, device_data(x), plan.w, device_data(w),
                     descriptor, chosen.algorithm, device_->workspace(chosen.workspace),
                     chosen.workspace, b ? &kOne : &kZero, plan.y, device_data(y)),
                 "cudnnConvolutionForward");
}

void CudnnBackend::conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                                      Tensor& dx) {
  ConvolutionPlan& plan = plan_of(conv, dx, w, dy);
  const auto& chosen = plan.data_gradient();
  const ConvolutionDescriptor descriptor(api(), conv, chosen.compute, chosen.math);
  device_->check(api().cudnnConvolutionBackwardData(
                     device_->cudnn(), &kOne, plan.w, device_data(w), plan.y, device_data(dy),
                     descriptor, chosen.algorithm, device_->workspace(chosen.workspace),
                     chosen.workspace, &kZero, plan.x, device_data(dx)),
                 "cudnnConvolutionBackwardData");
}

void CudnnBackend::conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy,
                                        Tensor& dw, bool add) {
  ConvolutionPlan& plan = plan_of(conv, x, dw, dy);
  const auto& chosen = plan.weight_gradient();
  const ConvolutionDescriptor descriptor(api(), conv, chosen.compute, chosen.math);
  device_->check(api().cudnnConvolutionBackwardFilter(
                     device_->cudnn(), &kOne, plan.x, device_data(x), plan.y, device_data(dy),
                     descriptor, chosen.algorithm, device_->workspace(chosen.workspace),
                     chosen.workspace, add ? &kOne : &kZero, plan.w, device_data(dw)),
                 "cudnnConvolutionBackwardFilter");
}

}  // namespace halfscope::sim::backend::cudnn
