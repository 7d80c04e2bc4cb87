// SPDX-License-Identifier: Apache-2.0
// The three convolutions. The definition is y[n,p,q,k] = sum over r, s, c of
// x[n, p*u - pad + r, q*v - pad + s, c] * w[k,r,s,c]; the gradients are its transposes.
#include <cstring>
#include <utility>

#include "cuda/emulated/convolution_call.hpp"
#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

std::int64_t outputs(std::int64_t in, std::int64_t kernel, int padding, int stride, int dilation) {
  return 1 + (in + 2 * padding - ((kernel - 1) * dilation + 1)) / stride;
}

std::vector<double> inputs(const void* from, const Layout& layout, bool tf32) {
  std::vector<double> out = values(from, layout);
  if (tf32) {
    for (double& x : out) x = to_tf32(x);
  }
  return out;
}

/// Results that change from call to call by less than an ulp of binary16, as those of atomic sums.
void perturb(std::vector<double>& sums) {
  static bool odd = false;
  odd = !odd;
  if (!odd) return;
  for (double& x : sums) x *= 1 + 0x1p-12;
}

std::size_t index(const Layout& t, std::int64_t n, std::int64_t h, std::int64_t w) {
  return static_cast<std::size_t>(((n * t.h + h) * t.w + w) * t.c);
}

/// visit(start of the x pixel's channels, start of (k = 0, r, s)'s in w, start of the y pixel's)
/// for all pairs of pixels that meet.
template <class Visit>
void for_all_pairs(const ConvolutionCall& call, Visit visit) {
  for (std::int64_t n = 0; n < call.y.n; ++n) {
    for (std::int64_t p = 0; p < call.y.h; ++p) {
      for (std::int64_t q = 0; q < call.y.w; ++q) {
        for (std::int64_t r = 0; r < call.w.h; ++r) {
          const std::int64_t h = p * call.stride_h - call.padding_h + r * call.dilation_h;
          if (h < 0 || h >= call.x.h) continue;
          for (std::int64_t s = 0; s < call.w.w; ++s) {
            const std::int64_t w = q * call.stride_w - call.padding_w + s * call.dilation_w;
            if (w < 0 || w >= call.x.w) continue;
            visit(index(call.x, n, h, w), index(call.w, 0, r, s), index(call.y, n, p, q));
          }
        }
      }
    }
  }
}

std::vector<double> zeros(const Layout& layout) {
  return std::vector<double>(static_cast<std::size_t>(layout.size()));
}

/// K, R, S, C as R, S, C, K.
std::vector<double> filters_innermost(const std::vector<double>& w, const Layout& layout) {
  const auto filters = static_cast<std::size_t>(layout.n);
  const std::size_t filter = w.size() / filters;
  std::vector<double> out(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) out[i % filter * filters + i / filter] = w[i];
  return out;
}

/// The factors of every call, checked before it is queued.
struct Factors {
  float alpha, beta;
  Factors(const void* a, const void* b)
      : alpha(factor(a, "alpha of a convolution")), beta(factor(b, "beta of a convolution")) {}
};

/// Real algorithms leave anything there.
void clobber(void* workspace, std::size_t bytes) {
  if (bytes != 0) std::memset(workspace, 0xFF, bytes);
}

}  // namespace

ConvolutionCall::ConvolutionCall(cudnnTensorDescriptor_t x_descriptor,
                                 cudnnFilterDescriptor_t w_descriptor,
                                 cudnnConvolutionDescriptor_t convolution,
                                 cudnnTensorDescriptor_t y_descriptor)
    : x(layout_of(x_descriptor)), w(layout_of(w_descriptor)), y(layout_of(y_descriptor)) {
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t compute{};
  int groups = 0;
  require(cudnnGetConvolution2dDescriptor(convolution, &padding_h, &padding_w, &stride_h, &stride_w,
                                          &dilation_h, &dilation_w, &mode,
                                          &compute) == CUDNN_STATUS_SUCCESS,
          "a convolution descriptor that was not set");
  cudnnGetConvolutionMathType(convolution, &math);
  cudnnGetConvolutionGroupCount(convolution, &groups);
  supported(mode == CUDNN_CROSS_CORRELATION, "a convolution that turns its filter around");
  supported(compute == CUDNN_DATA_FLOAT, "sums that are not binary32");
  supported(groups == 1, "groups");
  supported(x.type == w.type && x.type == y.type, "tensors of different types");
  supported(
      (w.is_nhwc() && x.is_nhwc() && y.is_nhwc()) || (w.is_nchw() && x.is_nchw() && y.is_nchw()),
      "a filter of another format than the tensors");
  require(x.c == w.c, "the filter's channels are not x's");
  const bool fits = y.n == x.n && y.c == w.n &&
                    y.h == outputs(x.h, w.h, padding_h, stride_h, dilation_h) &&
                    y.w == outputs(x.w, w.w, padding_w, stride_w, dilation_w);
  require(fits, "y's shape is not the convolution's");
}

cudnnStatus_t StandIns::cudnnConvolutionForward(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_descriptor,
    const void* x, const cudnnFilterDescriptor_t w_descriptor, const void* w,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionFwdAlgo_t algorithm,
    void* workspace, std::size_t bytes, const void* beta,
    const cudnnTensorDescriptor_t y_descriptor, void* y) {
  return answered<cudnnStatus_t>([&] {
    const ConvolutionCall call(x_descriptor, w_descriptor, convolution, y_descriptor);
    const Factors factors(alpha, beta);
    require_memory(x, call.x, "x");
    require_memory(w, call.w, "w");
    require_memory(y, call.y, "y");
    checked(forward_algorithms(call), algorithm, workspace, bytes);
    queue(handle, [=] {
      clobber(workspace, bytes);
      const auto in = inputs(x, call.x, call.uses_tf32());
      const auto weights = inputs(w, call.w, call.uses_tf32());
      std::vector<double> sums = zeros(call.y);
      const std::vector<double> across = filters_innermost(weights, call.w);
      const auto filters = static_cast<std::size_t>(call.w.n);
      for_all_pairs(call, [&](std::size_t i, std::size_t j, std::size_t o) {
        for (std::size_t c = 0; c < static_cast<std::size_t>(call.x.c); ++c) {
          const double* const from = &across[(j + c) * filters];
          for (std::size_t k = 0; k < filters; ++k) sums[o + k] += in[i + c] * from[k];
        }
      });
      blend(sums, y, call.y, factors.alpha, factors.beta);
    });
  });
}

cudnnStatus_t StandIns::cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t w_descriptor,
    const void* w, const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t algorithm,
    void* workspace, std::size_t bytes, const void* beta,
    const cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return answered<cudnnStatus_t>([&] {
    const ConvolutionCall call(dx_descriptor, w_descriptor, convolution, dy_descriptor);
    const Factors factors(alpha, beta);
    require_memory(dx, call.x, "dx");
    require_memory(w, call.w, "w");
    require_memory(dy, call.y, "dy");
    const Algorithm used = checked(data_algorithms(call), algorithm, workspace, bytes);
    queue(handle, [=] {
      clobber(workspace, bytes);
      const auto out = inputs(dy, call.y, call.uses_tf32());
      const auto weights = inputs(w, call.w, call.uses_tf32());
      std::vector<double> sums = zeros(call.x);
      const auto filter = static_cast<std::size_t>(call.w.h * call.w.w * call.w.c);
      const auto channels = static_cast<std::size_t>(call.x.c);
      for_all_pairs(call, [&](std::size_t i, std::size_t j, std::size_t o) {
        for (std::size_t k = 0; k < static_cast<std::size_t>(call.y.c); ++k) {
          const double gradient = out[o + k];
          const double* const from = &weights[j + k * filter];
          for (std::size_t c = 0; c < channels; ++c) sums[i + c] += gradient * from[c];
        }
      });
      if (!used.deterministic) perturb(sums);
      blend(sums, dx, call.x, factors.alpha, factors.beta);
    });
  });
}

cudnnStatus_t StandIns::cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_descriptor,
    const void* x, const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdFilterAlgo_t algorithm,
    void* workspace, std::size_t bytes, const void* beta,
    const cudnnFilterDescriptor_t dw_descriptor, void* dw) {
  return answered<cudnnStatus_t>([&] {
    const ConvolutionCall call(x_descriptor, dw_descriptor, convolution, dy_descriptor);
    const Factors factors(alpha, beta);
    require_memory(x, call.x, "x");
    require_memory(dw, call.w, "dw");
    require_memory(dy, call.y, "dy");
    const Algorithm used = checked(filter_algorithms(call), algorithm, workspace, bytes);
    queue(handle, [=] {
      clobber(workspace, bytes);
      const auto in = inputs(x, call.x, call.uses_tf32());
      const auto out = inputs(dy, call.y, call.uses_tf32());
      std::vector<double> sums = zeros(call.w);
      const auto filter = static_cast<std::size_t>(call.w.h * call.w.w * call.w.c);
      const auto channels = static_cast<std::size_t>(call.x.c);
      for_all_pairs(call, [&](std::size_t i, std::size_t j, std::size_t o) {
        for (std::size_t k = 0; k < static_cast<std::size_t>(call.y.c); ++k) {
          const double gradient = out[o + k];
          double* const to = &sums[j + k * filter];
          for (std::size_t c = 0; c < channels; ++c) to[c] += gradient * in[i + c];
        }
      });
      if (!used.deterministic) perturb(sums);
      blend(sums, dw, call.w, factors.alpha, factors.beta);
    });
  });
}

}  // namespace halfscope::emulated
