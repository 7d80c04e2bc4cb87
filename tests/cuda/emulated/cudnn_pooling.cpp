// SPDX-License-Identifier: Apache-2.0
// Pooling, forward and backward.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/library_calls.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

struct PoolingCall {
  Layout x, y;
  cudnnPoolingMode_t mode{};
  cudnnNanPropagation_t nan{};
  int window_h = 0, window_w = 0, padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1;

  PoolingCall(cudnnPoolingDescriptor_t pooling, const Layout& x_, const Layout& y_);
  bool is_max() const {
    return mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
  }
};

PoolingCall::PoolingCall(cudnnPoolingDescriptor_t pooling, const Layout& x_, const Layout& y_)
    : x(x_), y(y_) {
  require(cudnnGetPooling2dDescriptor(pooling, &mode, &nan, &window_h, &window_w, &padding_h,
                                      &padding_w, &stride_h, &stride_w) == CUDNN_STATUS_SUCCESS &&
              window_h > 0,
          "a pooling descriptor that was not set");
  supported(x.type == y.type, "tensors of different types");
  const bool fits = y.n == x.n && y.c == x.c &&
                    y.h == 1 + (x.h + 2 * padding_h - window_h) / stride_h &&
                    y.w == 1 + (x.w + 2 * padding_w - window_w) / stride_w;
  require(fits, "y's shape is not the pooling's");
}

/// Places of one window in a vector of all of x, in row order; padding has none.
std::vector<std::size_t> window(const PoolingCall& p, std::int64_t n, std::int64_t h,
                                std::int64_t w, std::int64_t c) {
  std::vector<std::size_t> out;
  for (int r = 0; r < p.window_h; ++r) {
    for (int s = 0; s < p.window_w; ++s) {
      const std::int64_t i = h * p.stride_h - p.padding_h + r;
      const std::int64_t j = w * p.stride_w - p.padding_w + s;
      if (i < 0 || j < 0 || i >= p.x.h || j >= p.x.w) continue;
      out.push_back(static_cast<std::size_t>(((n * p.x.h + i) * p.x.w + j) * p.x.c + c));
    }
  }
  return out;
}

/// visit(window, its number) for all windows, in the order of y's values.
template <class Visit>
void for_all_windows(const PoolingCall& p, Visit visit) {
  std::size_t number = 0;
  for (std::int64_t n = 0; n < p.y.n; ++n) {
    for (std::int64_t h = 0; h < p.y.h; ++h) {
      for (std::int64_t w = 0; w < p.y.w; ++w) {
        for (std::int64_t c = 0; c < p.y.c; ++c) visit(window(p, n, h, w, c), number++);
      }
    }
  }
}

double largest(const PoolingCall& p, const std::vector<double>& x,
               const std::vector<std::size_t>& places) {
  double out = -std::numeric_limits<double>::infinity();
  for (const std::size_t i : places) {
    if (std::isnan(x[i]) && p.nan == CUDNN_PROPAGATE_NAN) return x[i];
    out = std::fmax(out, x[i]);
  }
  return out;
}

double divisor(const PoolingCall& p, const std::vector<std::size_t>& places) {
  if (p.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING) return p.window_h * p.window_w;
  return static_cast<double>(places.size());
}

std::vector<double> pooled(const PoolingCall& p, const std::vector<double>& x) {
  std::vector<double> out(static_cast<std::size_t>(p.y.size()));
  for_all_windows(p, [&](const std::vector<std::size_t>& places, std::size_t number) {
    if (p.is_max()) {
      out[number] = largest(p, x, places);
      return;
    }
    double sum = 0;
    for (const std::size_t i : places) sum += x[i];
    out[number] = sum / divisor(p, places);
  });
  return out;
}

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Where a maximum's gradient goes: the first of the largest, but by CUDNN_POOLING_MAX, which is
/// not deterministic, sometimes the last.
std::size_t chosen(const PoolingCall& p, const std::vector<double>& x,
                   const std::vector<std::size_t>& places, bool last) {
  const double most = largest(p, x, places);
  const auto is_it = [&](std::size_t i) { return equal(x[i], most); };
  if (last) return *std::find_if(places.rbegin(), places.rend(), is_it);
  return *std::find_if(places.begin(), places.end(), is_it);
}

std::vector<double> spread(const PoolingCall& p, const std::vector<double>& x,
                           const std::vector<double>& dy) {
  static bool odd = false;
  odd = !odd;
  const bool last = p.mode == CUDNN_POOLING_MAX && odd;
  std::vector<double> out(static_cast<std::size_t>(p.x.size()));
  for_all_windows(p, [&](const std::vector<std::size_t>& places, std::size_t number) {
    if (p.is_max()) {
      out[chosen(p, x, places, last)] += dy[number];
      return;
    }
    for (const std::size_t i : places) out[i] += dy[number] / divisor(p, places);
  });
  return out;
}

/// A backward pass that is given other tensors in y's place goes wrong in silence.
void check_is_pooled(const PoolingCall& p, const std::vector<double>& x,
                     const std::vector<double>& y) {
  if (!p.is_max()) return;
  const std::vector<double> want = pooled(p, x);
  if (!std::equal(want.begin(), want.end(), y.begin(), equal)) {
    report_problem("cudnnPoolingBackward: y is not x pooled");
  }
}

}  // namespace

cudnnStatus_t StandIns::cudnnPoolingForward(cudnnHandle_t handle,
                                            const cudnnPoolingDescriptor_t pooling,
                                            const void* alpha,
                                            const cudnnTensorDescriptor_t x_descriptor,
                                            const void* x, const void* beta,
                                            const cudnnTensorDescriptor_t y_descriptor, void* y) {
  return answered<cudnnStatus_t>([&] {
    const PoolingCall call(pooling, layout_of(x_descriptor), layout_of(y_descriptor));
    const float a = factor(alpha, "alpha of pooling"), b = factor(beta, "beta of pooling");
    require_memory(x, call.x, "x");
    require_memory(y, call.y, "y");
    queue(handle, [=] { blend(pooled(call, values(x, call.x)), y, call.y, a, b); });
  });
}

cudnnStatus_t StandIns::cudnnPoolingBackward(
    cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling, const void* alpha,
    const cudnnTensorDescriptor_t y_descriptor, const void* y,
    const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnTensorDescriptor_t x_descriptor, const void* x, const void* beta,
    const cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return answered<cudnnStatus_t>([&] {
    const PoolingCall call(pooling, layout_of(x_descriptor), layout_of(y_descriptor));
    const Layout dy_layout = layout_of(dy_descriptor), dx_layout = layout_of(dx_descriptor);
    require(dy_layout.same_shape(call.y), "dy's shape is not y's");
    require(dx_layout.same_shape(call.x), "dx's shape is not x's");
    supported(dy_layout.type == call.x.type && dx_layout.type == call.x.type,
              "tensors of different types");
    const float a = factor(alpha, "alpha of pooling"), b = factor(beta, "beta of pooling");
    require_memory(x, call.x, "x");
    require_memory(y, call.y, "y");
    require_memory(dy, dy_layout, "dy");
    require_memory(dx, dx_layout, "dx");
    queue(handle, [=] {
      const std::vector<double> in = values(x, call.x);
      check_is_pooled(call, in, values(y, call.y));
      blend(spread(call, in, values(dy, dy_layout)), dx, dx_layout, a, b);
    });
  });
}

}  // namespace halfscope::emulated
