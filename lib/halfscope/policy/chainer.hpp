// SPDX-License-Identifier: Apache-2.0
// chainer.Optimizer.loss_scaling. The scale is a Python float.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// The scale changes at every step: x2 until the first overflow ever, then x2^(1/interval).
struct Chainer {
  static constexpr Info info = {
      .name = "chainer",
      .framework = "Chainer, Optimizer.loss_scaling",
      .source = "chainer chainer/optimizer.py a8e15cbe",
      .quirk =
          "grows at every clean step; no power of two after the first overflow; ceiling of "
          "65504, floor of 1",
      .interval = "interval"};
  static constexpr double max_scale = 65504;

  std::int64_t interval = 1000;
  std::optional<double> fixed;  ///< "scale": a static scale, not checked for overflow
  static constexpr auto settings() {
    return std::array{Option<Chainer>{"interval", &Chainer::interval, Range::count},
                      Option<Chainer>{"scale", &Chainer::fixed, Range::positive}};
  }

  double current = 1;
  bool nan_ever = false;
  static constexpr auto state() {
    return std::array{Option<Chainer>{"loss_scale", &Chainer::current},
                      Option<Chainer>{"loss_scaling_isnan_ever", &Chainer::nan_ever}};
  }

  void start() { current = fixed.value_or(1); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (fixed) return {Action::apply};
    double factor = 2;
    if (attempt.nonfinite) {
      nan_ever = true;
      factor = 0.5;
    } else if (nan_ever) {
      factor = std::pow(2.0, 1.0 / static_cast<double>(interval));
    }
    current = std::max(1.0, std::min(max_scale, current * factor));
    return {attempt.nonfinite ? Action::skip : Action::apply};
  }
};

}  // namespace halfscope::policy
