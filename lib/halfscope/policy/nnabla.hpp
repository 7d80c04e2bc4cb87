// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling of Sony's NNabla. The scale is a Python float.
#pragma once

#include <array>
#include <cstdint>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// Common part of the updater and of the tutorial's loop.
struct NnablaScale {
  double initial = 8, scaling_factor = 2;
  std::int64_t interval = 2000;

  double current = 0;
  std::int64_t counter = 0;

  void start() { current = initial; }
  double scale() const { return current; }

 protected:
  void back_off() {
    current /= scaling_factor;
    counter = 0;
  }
  void clean_step() {
    if (counter > interval) {  // tested before this step is counted
      current *= scaling_factor;
      counter = 0;
    }
    ++counter;
  }
};

/// DynamicLossScalingUpdater: a step that overflows is repeated at half the scale.
struct Nnabla : NnablaScale {
  static constexpr Info info = {
      .name = "nnabla",
      .framework = "NNabla, DynamicLossScalingUpdater",
      .source = "nnabla python/src/nnabla/experimental/mixed_precision_training.py 2814df0d",
      .quirk =
          "tries a step again, up to 101 times and with the next batch: a batch with NaN costs "
          "2^101 of the scale; no floor",
      .initial = "scale",
      .interval = "N"};
  static constexpr std::int64_t max_recursive_count = 100;

  static constexpr auto settings() {
    return std::array{Option<Nnabla>{"scale", &Nnabla::initial, Range::positive},
                      Option<Nnabla>{"scaling_factor", &Nnabla::scaling_factor, Range::positive},
                      Option<Nnabla>{"N", &Nnabla::interval, Range::count}};
  }

  std::int64_t recursive_count = 0;
  static constexpr auto state() {
    return std::array{Option<Nnabla>{"scale", &Nnabla::current},
                      Option<Nnabla>{"counter", &Nnabla::counter},
                      Option<Nnabla>{"recursive_count", &Nnabla::recursive_count}};
  }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      back_off();
      if (++recursive_count <= max_recursive_count) return {Action::retry};
      recursive_count = 0;
      return {Action::skip};
    }
    // NNabla computes 1. / scale only if the gradients are finite.
    if (current == 0) return {Action::skip, "ZeroDivisionError: float division by zero"};
    recursive_count = 0;
    clean_step();
    return {Action::apply};
  }
};

/// The training loop in NNabla's tutorial: a step that overflows is skipped.
struct NnablaTutorial : NnablaScale {
  static constexpr Info info = {
      .name = "nnabla-tutorial",
      .framework = "NNabla, the tutorial's loop",
      .source = "nnabla, documentation: tutorial of mixed-precision training",
      .quirk =
          "skips where NNabla's own updater tries again; interval + 2 clean steps until the "
          "first growth; no floor",
      .initial = "loss_scale",
      .interval = "interval"};

  static constexpr auto settings() {
    using T = NnablaTutorial;
    return std::array{Option<T>{"loss_scale", &T::initial, Range::positive},
                      Option<T>{"scaling_factor", &T::scaling_factor, Range::positive},
                      Option<T>{"interval", &T::interval, Range::count}};
  }
  static constexpr auto state() {
    using T = NnablaTutorial;
    return std::array{Option<T>{"loss_scale", &T::current}, Option<T>{"counter", &T::counter}};
  }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      back_off();
      return {Action::skip};
    }
    clean_step();
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
