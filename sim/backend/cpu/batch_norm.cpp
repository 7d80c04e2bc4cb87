// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over all but the last dimension (Ioffe, Szegedy 2015, algorithm 1 and the
// derivatives below it). Statistics, parameters and sums are binary32, as in cuDNN; y and dx are
// rounded once. Sums over rows: kNormRows.
#include <cmath>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

/// A tensor as rows of channels.
struct Rows {
  Rows(const Tensor& x, const Tensor& gamma)
      : channels(gamma.size()), count(require_channels(x, gamma)) {}
  std::int64_t channels, count;

  std::int64_t blocks() const { return (count + kNormRows - 1) / kNormRows; }
  /// Offsets of a block's first row, and of the end of its last row.
  std::int64_t begin(std::int64_t block) const { return block * kNormRows * channels; }
  std::int64_t end(std::int64_t block) const {
    return std::min(count, (block + 1) * kNormRows) * channels;
  }
};

/// Adds rows [begin, end) of x - mean, or of its squares, to sums.
void add_rows(const float* __restrict x, const float* __restrict mean, bool square,
              std::int64_t begin, std::int64_t end, std::int64_t channels, float* __restrict sums) {
  for (std::int64_t row = begin; row < end; row += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const float d = x[row + c] - mean[c];
      sums[c] += square ? d * d : d;
    }
  }
}

/// Adds rows of dy to one sum, and rows of dy times the normalised x to the other.
void add_gradient_rows(const float* __restrict x, const float* __restrict dy,
                       const float* __restrict mean, const float* __restrict inverse,
                       std::int64_t begin, std::int64_t end, std::int64_t channels,
                       float* __restrict sums, float* __restrict products) {
  for (std::int64_t row = begin; row < end; row += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      sums[c] += dy[row + c];
      products[c] += dy[row + c] * ((x[row + c] - mean[c]) * inverse[c]);
    }
  }
}

/// Returns the sum of the blocks' sums, in order.
std::vector<float> total_of(const std::vector<float>& partial, std::int64_t channels) {
  std::vector<float> total(at(channels));
  for (std::size_t i = 0; i < partial.size(); ++i) total[i % at(channels)] += partial[i];
  return total;
}

/// Writes sums, added to the old values if `add` is true; rounds once.
void store(const std::vector<float>& sums, Tensor& to, bool add) {
  float* out = data(to);
  for (std::size_t c = 0; c < sums.size(); ++c) out[c] = (add ? out[c] : 0.0F) + sums[c];
  round_values(to.dtype, out, to.size());
}

/// Returns the means over rows of x - from, or of its square. `parallel` is CpuBackend::parallel.
template <class Parallel>
std::vector<float> means(const Rows& rows, const float* x, const std::vector<float>& from,
                         bool square, const Parallel& parallel) {
  std::vector<float> partial(at(rows.blocks() * rows.channels));
  parallel(rows.blocks(), [&](std::int64_t block) {
    add_rows(x, from.data(), square, rows.begin(block), rows.end(block), rows.channels,
             &partial[at(block * rows.channels)]);
  });
  std::vector<float> total = total_of(partial, rows.channels);
  for (float& sum : total) sum /= static_cast<float>(rows.count);
  return total;
}

struct Statistics {
  std::vector<float> mean, variance;  // biased variance
};

void update_running(const Statistics& now, std::int64_t rows, BatchNormParameters& parameters) {
  float *mean = data(parameters.running_mean), *variance = data(parameters.running_variance);
  const auto count = static_cast<float>(rows);
  const auto take = static_cast<float>(parameters.momentum), keep = 1.0F - take;
  for (std::size_t c = 0; c < now.mean.size(); ++c) {
    mean[c] = keep * mean[c] + take * now.mean[c];
    variance[c] = keep * variance[c] + take * (now.variance[c] * (count / (count - 1.0F)));
  }
}

Statistics running(const BatchNormParameters& parameters, std::int64_t channels) {
  const float *mean = data(parameters.running_mean), *variance = data(parameters.running_variance);
  return {{mean, mean + channels}, {variance, variance + channels}};
}

void normalise_rows(const float* __restrict x, const float* mean, const float* inverse,
                    const float* gamma, const float* beta, std::int64_t begin, std::int64_t end,
                    std::int64_t channels, float* __restrict y) {
  for (std::int64_t row = begin; row < end; row += channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      y[row + c] = gamma[c] * ((x[row + c] - mean[c]) * inverse[c]) + beta[c];
    }
  }
}

}  // namespace

void CpuBackend::batch_norm_forward(const Tensor& x, BatchNormParameters& parameters,
                                    bool inference, BatchNormSaved& saved, Tensor& y) {
  const Rows rows(x, parameters.gamma);
  if (!inference) require_variance(rows.count);
  const float* in = data(x);
  float* out = data(y);
  Statistics now;
  if (inference) {
    now = running(parameters, rows.channels);
  } else {
    // The mean is computed first, then the squares of the deviations, to avoid cancellation.
    const auto threads = [this](std::int64_t parts, const auto& work) { parallel(parts, work); };
    now.mean = means(rows, in, std::vector<float>(at(rows.channels)), false, threads);
    now.variance = means(rows, in, now.mean, true, threads);
    update_running(now, rows.count, parameters);
  }
  if (!saved.mean) saved.mean = make(parameters.gamma.shape, Dtype::f32);
  if (!saved.inverse_deviation) saved.inverse_deviation = make(parameters.gamma.shape, Dtype::f32);
  float *mean = data(saved.mean), *inverse = data(saved.inverse_deviation);
  const auto epsilon = static_cast<float>(parameters.epsilon);
  for (std::size_t c = 0; c < now.mean.size(); ++c) {
    mean[c] = now.mean[c];
    inverse[c] = 1.0F / std::sqrt(now.variance[c] + epsilon);
  }
  const float *gamma = data(parameters.gamma), *beta = data(parameters.beta);
  parallel(rows.blocks(), [&](std::int64_t block) {
    const std::int64_t begin = rows.begin(block), end = rows.end(block);
    normalise_rows(in, mean, inverse, gamma, beta, begin, end, rows.channels, out);
    round_values(y.dtype, out + begin, end - begin);
  });
}

void CpuBackend::batch_norm_backward(const Tensor& x, const Tensor& dy,
                                     const BatchNormParameters& parameters,
                                     const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma,
                                     Tensor& dbeta, bool add) {
  const Rows rows(x, parameters.gamma);
  const std::int64_t channels = rows.channels;
  const float *in = data(x), *up = data(dy), *gamma = data(parameters.gamma),
              *mean = data(saved.mean), *inverse = data(saved.inverse_deviation);
  float* out = data(dx);

  std::vector<float> partial(at(rows.blocks() * channels)), products(partial.size());
  parallel(rows.blocks(), [&](std::int64_t block) {
    add_gradient_rows(in, up, mean, inverse, rows.begin(block), rows.end(block), channels,
                      &partial[at(block * channels)], &products[at(block * channels)]);
  });
  const std::vector<float> of_beta = total_of(partial, channels),
                           of_gamma = total_of(products, channels);

  std::vector<float> factor(at(channels)), shift(at(channels)), slope(at(channels));
  for (std::size_t c = 0; c < at(channels); ++c) {
    factor[c] = gamma[c] * inverse[c];
    shift[c] = of_beta[c] / static_cast<float>(rows.count);
    slope[c] = of_gamma[c] / static_cast<float>(rows.count);
  }
  parallel(rows.blocks(), [&](std::int64_t block) {
    const std::int64_t begin = rows.begin(block), end = rows.end(block);
    for (std::int64_t row = begin; row < end; row += channels) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float normal = (in[row + c] - mean[c]) * inverse[c];
        out[row + c] = factor[at(c)] * ((up[row + c] - shift[at(c)]) - normal * slope[at(c)]);
      }
    }
    round_values(dx.dtype, out + begin, end - begin);
  });
  store(of_gamma, dgamma, add);
  store(of_beta, dbeta, add);
}

}  // namespace halfscope::sim::backend::cpu
