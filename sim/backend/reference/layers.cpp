// SPDX-License-Identifier: Apache-2.0
// Batch normalisation (Ioffe, Szegedy 2015, algorithm 1 and the derivatives below it), pooling, and
// elementwise operations.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/reference/backend.hpp"
#include "sim/backend/reference/sums.hpp"

namespace halfscope::sim::backend::reference {
namespace {

using Index = std::int64_t;

/// Calls what(output index, input index) for every element of every window; windows, and elements
/// in each window, are in row order.
template <class What>
void each_in_windows(const Pool& pool, const Shape& x, const Shape& y, What what) {
  const Index h = x[1], w = x[2], c = x[3];
  for (Index out = 0; out < elements(y); ++out) {
    const Index channel = out % c, q = out / c % y[2], p = out / c / y[2] % y[1];
    const Index n = out / c / y[2] / y[1];
    for (int r = 0; r < pool.kernel; ++r) {
      for (int s = 0; s < pool.kernel; ++s) {
        const Index row = p * pool.stride + r, column = q * pool.stride + s;
        what(at(out), at(((n * h + row) * w + column) * c + channel));
      }
    }
  }
}

/// Returns the sum of f(element) over one channel.
template <class F>
double channel_sum(std::size_t channel, std::size_t channels, std::size_t size, F f) {
  Sum sum;
  for (std::size_t i = channel; i < size; i += channels) sum.add(f(i));
  return sum.value();
}

}  // namespace

void ReferenceBackend::batch_norm_forward(const Tensor& x, BatchNormParameters& parameters,
                                          bool inference, BatchNormSaved& saved, Tensor& y) {
  const std::span<const double> in = values(x), gamma = values(parameters.gamma),
                                beta = values(parameters.beta);
  const std::span<double> out = values(y), running_mean = values(parameters.running_mean),
                          running_variance = values(parameters.running_variance);
  const std::size_t channels = gamma.size();
  const std::size_t rows = in.size() / channels;
  const auto count = static_cast<double>(rows);
  if (!inference) require_variance(static_cast<std::int64_t>(rows));
  if (!saved.mean) saved.mean = make(parameters.gamma.shape, Dtype::f32);
  if (!saved.inverse_deviation) saved.inverse_deviation = make(parameters.gamma.shape, Dtype::f32);
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = running_mean[c], variance = running_variance[c];
    if (!inference) {
      mean = channel_sum(c, channels, in.size(), [&](std::size_t i) { return in[i]; }) / count;
      const auto square = [&](std::size_t i) { return (in[i] - mean) * (in[i] - mean); };
      variance = channel_sum(c, channels, in.size(), square) / count;
      const double keep = 1 - parameters.momentum;
      running_mean[c] = keep * running_mean[c] + parameters.momentum * mean;
      running_variance[c] =
          keep * running_variance[c] + parameters.momentum * (variance * count / (count - 1));
    }
    const double inverse = 1 / std::sqrt(variance + parameters.epsilon);
    values(saved.mean)[c] = mean;
    values(saved.inverse_deviation)[c] = inverse;
    for (std::size_t i = c; i < in.size(); i += channels) {
      out[i] = gamma[c] * ((in[i] - mean) * inverse) + beta[c];
    }
  }
}

void ReferenceBackend::batch_norm_backward(const Tensor& x, const Tensor& dy,
                                           const BatchNormParameters& parameters,
                                           const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                           Tensor& dbeta, bool add) {
  const std::span<const double> in = values(x), up = values(dy), gamma = values(parameters.gamma);
  const std::span<double> out = values(dx);
  const std::size_t channels = gamma.size();
  const std::size_t rows = in.size() / channels;
  const auto count = static_cast<double>(rows);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = values(saved.mean)[c], inverse = values(saved.inverse_deviation)[c];
    const auto normal = [&](std::size_t i) { return (in[i] - mean) * inverse; };
    const double sum = channel_sum(c, channels, in.size(), [&](std::size_t i) { return up[i]; });
    const double product =
        channel_sum(c, channels, in.size(), [&](std::size_t i) { return up[i] * normal(i); });
    for (std::size_t i = c; i < in.size(); i += channels) {
      out[i] = gamma[c] * inverse * (up[i] - sum / count - normal(i) * product / count);
    }
    double& to_gamma = values(dgamma)[c];
    double& to_beta = values(dbeta)[c];
    to_gamma = (add ? to_gamma : 0) + product;
    to_beta = (add ? to_beta : 0) + sum;
  }
}

void ReferenceBackend::pool_forward(const Pool& pool, const Tensor& x, Tensor& y) {
  const std::span<const double> in = values(x);
  const std::span<double> out = values(y);
  if (pool.kind == Pool::Kind::max) {
    std::ranges::fill(out, -std::numeric_limits<double>::infinity());
    each_in_windows(pool, x.shape, y.shape, [&](std::size_t o, std::size_t i) {
      if (in[i] > out[o] || std::isnan(in[i])) out[o] = in[i];
    });
    return;
  }
  std::ranges::fill(out, 0.0);
  each_in_windows(pool, x.shape, y.shape, [&](std::size_t o, std::size_t i) { out[o] += in[i]; });
  for (double& value : out) value /= pool.kernel * pool.kernel;
}

void ReferenceBackend::pool_backward(const Pool& pool, const Tensor& x, const Tensor& y,
                                     const Tensor& dy, Tensor& dx) {
  const std::span<const double> in = values(x), largest = values(y), up = values(dy);
  const std::span<double> out = values(dx);
  std::ranges::fill(out, 0.0);
  if (pool.kind == Pool::Kind::average) {
    each_in_windows(pool, x.shape, y.shape, [&](std::size_t o, std::size_t i) {
      out[i] += up[o] / (pool.kernel * pool.kernel);
    });
    return;
  }
  std::vector<char> given(up.size());
  each_in_windows(pool, x.shape, y.shape, [&](std::size_t o, std::size_t i) {
    const bool it = in[i] == largest[o] || (std::isnan(in[i]) && std::isnan(largest[o]));
    if (it && given[o] == 0) {
      given[o] = 1;
      out[i] += up[o];
    }
  });
}

void ReferenceBackend::relu_forward(const Tensor& x, Tensor& y) {
  const auto rectified = [](double v) { return v <= 0 ? 0.0 : v; };  // NaN is returned
  std::ranges::transform(values(x), values(y).begin(), rectified);
}

void ReferenceBackend::relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  std::ranges::transform(values(y), values(dy), values(dx).begin(),
                         [](double v, double up) { return v <= 0 ? 0.0 : up; });
}

void ReferenceBackend::add(const Tensor& a, const Tensor& b, Tensor& y) {
  std::ranges::transform(values(a), values(b), values(y).begin(), std::plus<>());
}

void ReferenceBackend::multiply(const Tensor& x, double factor, Tensor& y) {
  std::ranges::transform(values(x), values(y).begin(), [=](double v) { return v * factor; });
}

void ReferenceBackend::join(std::span<const Tensor> parts, Tensor& y) {
  double* to = values(y).data();
  for (Index n = 0; n < y.shape[0]; ++n) {
    for (const Tensor& part : parts) {
      const Index size = part.size() / part.shape[0];
      to = std::copy_n(values(part).data() + n * size, size, to);
    }
  }
}

void ReferenceBackend::split(const Tensor& dy, std::span<Tensor> parts) {
  const double* from = values(dy).data();
  for (Index n = 0; n < dy.shape[0]; ++n) {
    for (const Tensor& part : parts) {
      const Index size = part.size() / part.shape[0];
      std::copy_n(from, size, values(part).data() + n * size);
      from += size;
    }
  }
}

}  // namespace halfscope::sim::backend::reference
