// SPDX-License-Identifier: Apache-2.0
// Spatial batch normalisation (Ioffe and Szegedy, 2015): statistics of each channel over images and
// pixels. Its gradient, with xhat = (x - mean) * istd and m values a channel:
// dx = gamma * istd * (dy - (sum dy + xhat * sum(dy * xhat)) / m).
#include <cmath>
#include <string>
#include <vector>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/library_calls.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

using Channels = std::vector<double>;

/// The checks that all three share; `channels` in the parameters' descriptor.
std::int64_t checked_channels(cudnnBatchNormMode_t mode, const Layout& x, const Layout& y,
                              cudnnTensorDescriptor_t parameters, double epsilon) {
  supported(mode == CUDNN_BATCHNORM_SPATIAL || mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT,
            "batch normalisation for each activation");
  supported(x.type == y.type, "tensors of different types");
  require(x.same_shape(y), "tensors of different shapes");
  require(epsilon >= CUDNN_BN_MIN_EPSILON, "epsilon");
  const Layout p = layout_of(parameters);
  require(p.type == Type::f32 && p.n == 1 && p.h == 1 && p.w == 1 && p.c == x.c,
          "the parameters are not 1 x C x 1 x 1, binary32");
  return x.c;
}

Channels floats(const void* from, std::int64_t count) {
  const auto* first = static_cast<const float*>(from);
  return Channels(first, first + count);
}

void put_floats(const Channels& values, void* to) {
  for (std::size_t i = 0; i < values.size(); ++i) store(to, i, Type::f32, values[i]);
}

struct Statistics {
  Channels mean, variance;  ///< biased
};

Statistics statistics(const std::vector<double>& x, std::size_t channels) {
  const double m = static_cast<double>(x.size() / channels);
  Statistics out = {Channels(channels), Channels(channels)};
  for (std::size_t i = 0; i < x.size(); ++i) out.mean[i % channels] += x[i] / m;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - out.mean[i % channels];
    out.variance[i % channels] += d * d / m;
  }
  return out;
}

Channels inverse_deviation(const Channels& variance, double epsilon) {
  Channels out = variance;
  for (double& v : out) v = 1 / std::sqrt(v + epsilon);
  return out;
}

std::vector<double> normalised(const std::vector<double>& x, const Channels& mean,
                               const Channels& inverse, const Channels& scale,
                               const Channels& bias) {
  std::vector<double> out = x;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t c = i % mean.size();
    out[i] = scale[c] * ((x[i] - mean[c]) * inverse[c]) + bias[c];
  }
  return out;
}

/// running = (1 - factor) * running + factor * value, in place.
void run(void* running, const Channels& value, double factor) {
  Channels out = floats(running, static_cast<std::int64_t>(value.size()));
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = (1 - factor) * out[c] + factor * value[c];
  }
  put_floats(out, running);
}

/// What is saved is of this x and this epsilon.
void check_saved(const Channels& saved_mean, const Channels& saved_inverse, const Statistics& of_x,
                 double epsilon) {
  const Channels inverse = inverse_deviation(of_x.variance, epsilon);
  for (std::size_t c = 0; c < inverse.size(); ++c) {
    const bool same = std::abs(saved_mean[c] - of_x.mean[c]) * inverse[c] < 1e-3 &&
                      std::abs(saved_inverse[c] / inverse[c] - 1) < 1e-3;
    if (same || !std::isfinite(inverse[c])) continue;
    report_problem("cudnnBatchNormalizationBackward: saved statistics are not x's");
    return;
  }
}

struct Normaliser {
  Channels mean, inverse;
};

/// What was saved; where nothing was, x's own.
Normaliser normaliser(const std::vector<double>& x, std::int64_t channels, double epsilon,
                      const void* saved_mean, const void* saved_inverse) {
  const Statistics s = statistics(x, static_cast<std::size_t>(channels));
  if (saved_mean == nullptr) return {s.mean, inverse_deviation(s.variance, epsilon)};
  const Normaliser out = {floats(saved_mean, channels), floats(saved_inverse, channels)};
  check_saved(out.mean, out.inverse, s, epsilon);
  return out;
}

struct Gradients {
  std::vector<double> x;
  Channels scale, bias;
};

Gradients gradients(const std::vector<double>& x, const std::vector<double>& dy,
                    const Channels& mean, const Channels& inverse, const Channels& scale) {
  const std::size_t channels = mean.size();
  const double m = static_cast<double>(x.size() / channels);
  const auto xhat = [&](std::size_t i) {
    return (x[i] - mean[i % channels]) * inverse[i % channels];
  };
  Gradients out = {std::vector<double>(x.size()), Channels(channels), Channels(channels)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.bias[i % channels] += dy[i];
    out.scale[i % channels] += dy[i] * xhat(i);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % channels;
    out.x[i] = scale[c] * inverse[c] * (dy[i] - (out.bias[c] + xhat(i) * out.scale[c]) / m);
  }
  return out;
}

/// The parameters' tensor, whatever its descriptor's strides: channels next to each other.
Layout channels_layout(std::int64_t count) {
  return {Type::f32, 1, 1, 1, count, count, count, count, 1};
}

}  // namespace

cudnnStatus_t StandIns::cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnTensorDescriptor_t y_descriptor, void* y, const cudnnTensorDescriptor_t parameters,
    const void* scale, const void* bias, double average_factor, void* running_mean,
    void* running_variance, double epsilon, void* saved_mean, void* saved_inverse) {
  return answered<cudnnStatus_t>([&] {
    const Layout in = layout_of(x_descriptor), out = layout_of(y_descriptor);
    const std::int64_t count = checked_channels(mode, in, out, parameters, epsilon);
    const float a = factor(alpha, "alpha of batch norm"), b = factor(beta, "beta of batch norm");
    require(in.size() / count > 1, "one value a channel has no variance");
    require(average_factor >= 0 && average_factor <= 1, "the average's factor");
    require((running_mean == nullptr) == (running_variance == nullptr), "half of the averages");
    require((saved_mean == nullptr) == (saved_inverse == nullptr), "half of what is saved");
    require_memory(x, in, "x");
    require_memory(y, out, "y");
    for (const void* p : {scale, bias}) require_floats(p, count, "a parameter");
    for (const void* p : {running_mean, running_variance, saved_mean, saved_inverse}) {
      if (p != nullptr) require_floats(p, count, "a statistic");
    }
    queue(handle, [=] {
      const std::vector<double> from = values(x, in);
      Statistics s = statistics(from, static_cast<std::size_t>(count));
      const Channels inverse = inverse_deviation(s.variance, epsilon);
      blend(normalised(from, s.mean, inverse, floats(scale, count), floats(bias, count)), y, out, a,
            b);
      if (saved_mean != nullptr) {
        put_floats(s.mean, saved_mean);
        put_floats(inverse, saved_inverse);
      }
      if (running_mean == nullptr) return;
      const double m = static_cast<double>(in.size() / count);
      for (double& v : s.variance) v *= m / (m - 1);  // unbiased, for inference
      run(running_mean, s.mean, average_factor);
      run(running_variance, s.variance, average_factor);
    });
  });
}

cudnnStatus_t StandIns::cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnTensorDescriptor_t y_descriptor, void* y, const cudnnTensorDescriptor_t parameters,
    const void* scale, const void* bias, const void* mean, const void* variance, double epsilon) {
  return answered<cudnnStatus_t>([&] {
    const Layout in = layout_of(x_descriptor), out = layout_of(y_descriptor);
    const std::int64_t count = checked_channels(mode, in, out, parameters, epsilon);
    const float a = factor(alpha, "alpha of batch norm"), b = factor(beta, "beta of batch norm");
    require_memory(x, in, "x");
    require_memory(y, out, "y");
    for (const void* p : {scale, bias, mean, variance}) require_floats(p, count, "a parameter");
    queue(handle, [=] {
      const Channels inverse = inverse_deviation(floats(variance, count), epsilon);
      blend(normalised(values(x, in), floats(mean, count), inverse, floats(scale, count),
                       floats(bias, count)),
            y, out, a, b);
    });
  });
}

cudnnStatus_t StandIns::cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_parameters, const void* beta_parameters,
    const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnTensorDescriptor_t dy_descriptor, const void* dy,
    const cudnnTensorDescriptor_t dx_descriptor, void* dx, const cudnnTensorDescriptor_t parameters,
    const void* scale, void* dscale, void* dbias, double epsilon, const void* saved_mean,
    const void* saved_inverse) {
  return answered<cudnnStatus_t>([&] {
    const Layout in = layout_of(x_descriptor), out = layout_of(dy_descriptor),
                 to = layout_of(dx_descriptor);
    const std::int64_t count = checked_channels(mode, in, out, parameters, epsilon);
    require(to.same_shape(in) && to.type == in.type, "dx is not like x");
    const float a = factor(alpha_data, "alpha of batch norm's data"),
                b = factor(beta_data, "beta of batch norm's data"),
                a_parameters = factor(alpha_parameters, "alpha of batch norm's parameters"),
                b_parameters = factor(beta_parameters, "beta of batch norm's parameters");
    require((saved_mean == nullptr) == (saved_inverse == nullptr), "half of what is saved");
    require_memory(x, in, "x");
    require_memory(dy, out, "dy");
    require_memory(dx, to, "dx");
    for (const void* p : {scale, static_cast<const void*>(dscale), static_cast<const void*>(dbias)})
      require_floats(p, count, "a parameter");
    for (const void* p : {saved_mean, saved_inverse}) {
      if (p != nullptr) require_floats(p, count, "a statistic");
    }
    queue(handle, [=] {
      const std::vector<double> from = values(x, in);
      const Normaliser by = normaliser(from, count, epsilon, saved_mean, saved_inverse);
      const Gradients g =
          gradients(from, values(dy, out), by.mean, by.inverse, floats(scale, count));
      blend(g.x, dx, to, a, b);
      blend(g.scale, dscale, channels_layout(count), a_parameters, b_parameters);
      blend(g.bias, dbias, channels_layout(count), a_parameters, b_parameters);
    });
  });
}

}  // namespace halfscope::emulated
