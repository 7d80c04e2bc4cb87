// SPDX-License-Identifier: Apache-2.0
// Adaptive loss scaling, layer by layer: Zhao et al., arXiv 1910.12385.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// One layer of AdaLossChainer, method approx_range, powers of two. Unlike other policies it
/// decides during the backward pass: after advance(), scale() is the factor for the gradient of
/// this layer's input. The next layer receives the gradient multiplied by it, and
/// LayerFacts::previous_scale there includes it.
struct Als {
  static constexpr Info info = {
      .name = "als",
      .framework = "Chainer, adaptive loss scaling (kumasento/gradient-scaling)",
      .source =
          "kumasento/gradient-scaling ada_loss/core.py, "
          "ada_loss/chainer_impl/ada_loss_chainer.py 0ca43543",
      .quirk =
          "a factor a layer, which the layers before multiply; never skips: a gradient that is "
          "not finite ends the run; where a product's deviation is 0 in binary32, the factor "
          "is 1",
      .arithmetic = Arithmetic::binary32,
      .needs = Needs::layers};
  /// sqrt(2) erfinv(1e-3): a fraction 1e-3 of a normal distribution is within this many standard
  /// deviations of 0.
  static constexpr double quantile = 0.0012533144654325546;

  double u_min = 6.0e-8, u_max = 65504, scale_upper_bound = 16, accum_upper_bound = 1024;
  std::int64_t update_per_n_iteration = 1;
  static constexpr auto settings() {
    return std::array{
        Option<Als>{"u_min", &Als::u_min, Range::positive},
        Option<Als>{"u_max", &Als::u_max, Range::positive},
        Option<Als>{"scale_upper_bound", &Als::scale_upper_bound, Range::positive},
        Option<Als>{"accum_upper_bound", &Als::accum_upper_bound, Range::positive},
        Option<Als>{"update_per_n_iteration", &Als::update_per_n_iteration, Range::count}};
  }

  double current = 1;
  float unbound = 1;  ///< before the limits by earlier layers
  std::int64_t cur_iter = 0;
  static constexpr auto state() {
    return std::array{Option<Als>{"loss_scale", &Als::current},
                      Option<Als>{"unbound_loss_scale", &Als::unbound},
                      Option<Als>{"cur_iter", &Als::cur_iter}};
  }

  void start() { current = 1; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.layer == nullptr) return {Action::apply};
    const LayerFacts& layer = *attempt.layer;
    if (cur_iter % update_per_n_iteration == 0) unbound = estimated(layer);
    ++cur_iter;
    if (std::isnan(unbound)) return {Action::apply, "ValueError: scale value nan is invalid"};
    if (std::isinf(unbound)) return {Action::apply, "ValueError: scale value inf is invalid"};
    const double accumulated = std::min(accum_upper_bound / layer.previous_scale, double{unbound});
    current = power_of_two(static_cast<float>(std::min(scale_upper_bound, accumulated)));
    return {Action::apply};
  }

 private:
  /// Returns the least factor of at least 1 at which at most a fraction 1e-3 is below u_min,
  /// limited so that a sum of the largest products stays finite.
  float estimated(const LayerFacts& layer) const {
    const float mean = static_cast<float>(layer.grad_mean);
    const float deviation = static_cast<float>(layer.grad_std);
    const double fan_in = layer.has_weight ? static_cast<double>(layer.fan_in) : 1;
    double spread = deviation;
    float largest = static_cast<float>(layer.grad_max_abs);
    if (!std::isfinite(largest)) return NAN;  // so are the framework's mean and deviation
    if (layer.has_weight) {
      const float weight_mean = static_cast<float>(layer.weight_mean);
      const float weight_deviation = static_cast<float>(layer.weight_std);
      spread = std::sqrt((deviation * deviation + mean * mean) *
                         (weight_deviation * weight_deviation + weight_mean * weight_mean));
      largest *= static_cast<float>(layer.weight_max_abs);
    }
    if (spread == 0) return 1;
    if (layer.has_weight) spread *= std::sqrt(0.5 * fan_in);  // ReLU zeroes half of them
    const double wanted = static_cast<float>(u_min) / (quantile * spread);
    if (std::isnan(wanted)) return NAN;
    const double cap = static_cast<float>(u_max) / fan_in / double{largest};
    return static_cast<float>(std::min(std::max(wanted, 1.0), cap));
  }

  /// Returns 2^floor(log2 s) in binary16; binary32's logarithm may round up to an integer.
  static double power_of_two(float s) {
    const float exponent = std::floor(std::log2(s));
    return exponent < -24 ? 0 : std::exp2(double{exponent});
  }
};

}  // namespace halfscope::policy
