// SPDX-License-Identifier: Apache-2.0
// Uses Eigen's vector functions on blocks of fixed length: for other lengths, Eigen would compute
// the last elements with different functions. Eigen clamps arguments (its exp(-1000) is 4e-39), so
// NaNs and arguments outside a range go to the C library.
#include "sim/backend/cpu/transcendental.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace halfscope::sim::backend::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
using Lanes = Eigen::Array<float, kLanes, 1>;

/// Writes vector(in) if least < in < most, else scalar(in).
template <class Vector, class Scalar>
void each_block(const float* in, float* out, std::int64_t count, float least, float most,
                Vector vector, Scalar scalar) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t lanes = std::min(kLanes, count - i);
    Lanes x = Lanes::Zero();
    std::copy_n(in + i, lanes, x.data());
    Lanes y = vector(x);
    if (!((x > least) && (x < most)).all()) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        if (!(x[j] > least && x[j] < most)) y[j] = scalar(x[j]);
      }
    }
    std::copy_n(y.data(), lanes, out + i);
  }
}

constexpr float kExpRange = 86;  // within it, results are normal and finite
constexpr float kTanhRange = 7;  // beyond it, Eigen clamps

}  // namespace

void exponentials(const float* in, float* out, std::int64_t count) {
  each_block(
      in, out, count, -kExpRange, kExpRange, [](const Lanes& x) -> Lanes { return x.exp(); },
      [](float x) { return std::exp(x); });
}

void hyperbolic_tangents(const float* in, float* out, std::int64_t count) {
  each_block(
      in, out, count, -kTanhRange, kTanhRange, [](const Lanes& x) -> Lanes { return x.tanh(); },
      [](float x) { return std::tanh(x); });
}

void logistic_functions(const float* in, float* out, std::int64_t count) {
  each_block(
      in, out, count, -kExpRange, kExpRange,
      [](const Lanes& x) -> Lanes { return 1.0F / (1.0F + (-x).exp()); },
      [](float x) { return 1.0F / (1.0F + std::exp(-x)); });
}

}  // namespace halfscope::sim::backend::cpu
