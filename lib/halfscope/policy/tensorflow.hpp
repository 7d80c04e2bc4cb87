// SPDX-License-Identifier: Apache-2.0
// Loss scaling in TensorFlow and Keras. The scale is a binary32 variable everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

namespace detail {

/// The update of TensorFlow's DynamicLossScale and Keras 2: a floor of 1; growth to infinity is
/// rejected, and the count of clean steps restarts.
inline Decision tensorflow_step(const Attempt& attempt, float factor, std::int64_t interval,
                                float& scale, std::int64_t& good_steps) {
  if (attempt.nonfinite) {
    good_steps = 0;
    scale = std::max(scale / factor, 1.0f);
    return {Action::skip};
  }
  if (good_steps + 1 >= interval) {
    const float grown = scale * factor;
    if (std::isfinite(grown)) scale = grown;
    good_steps = 0;
  } else {
    ++good_steps;
  }
  return {Action::apply};
}

}  // namespace detail

/// tf.train.experimental.DynamicLossScale.
struct Tf1 {
  static constexpr Info info = {
      .name = "tf1",
      .framework = "TensorFlow, tf.train.experimental.DynamicLossScale",
      .source = "tensorflow python/training/experimental/loss_scale.py 026389f7",
      .quirk =
          "floor of 1, where a scale below 1 may be needed; gradients are tested after "
          "unscaling",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_loss_scale",
      .interval = "increment_period"};
  static constexpr double fixed_floor() { return 1; }

  double initial_loss_scale = 32768;
  std::int64_t increment_period = 2000;
  double multiplier = 2;
  static constexpr auto settings() {
    return std::array{Option<Tf1>{"initial_loss_scale", &Tf1::initial_loss_scale, Range::positive},
                      Option<Tf1>{"increment_period", &Tf1::increment_period, Range::count},
                      Option<Tf1>{"multiplier", &Tf1::multiplier, Range::positive}};
  }

  float current = 0;
  std::int64_t num_good_steps = 0;
  static constexpr auto state() {
    return std::array{Option<Tf1>{"current_loss_scale", &Tf1::current},
                      Option<Tf1>{"num_good_steps", &Tf1::num_good_steps}};
  }

  void start() { current = static_cast<float>(initial_loss_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    return detail::tensorflow_step(attempt, static_cast<float>(multiplier), increment_period,
                                   current, num_good_steps);
  }
};

/// tf.keras.mixed_precision.LossScaleOptimizer of Keras 2, with the algorithm of Tf1.
struct Keras2 {
  static constexpr Info info = {
      .name = "keras2",
      .framework = "Keras 2, tf.keras.mixed_precision.LossScaleOptimizer",
      .source = "keras mixed_precision/loss_scale_optimizer.py 4829ddfc",
      .quirk =
          "floor of 1, where a scale below 1 may be needed; growth that would not be finite "
          "is refused, and the clean steps are counted anew",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_scale",
      .interval = "dynamic_growth_steps"};
  static constexpr double fixed_floor() { return 1; }

  double initial_scale = 32768;
  std::int64_t dynamic_growth_steps = 2000;
  static constexpr auto settings() {
    return std::array{
        Option<Keras2>{"initial_scale", &Keras2::initial_scale, Range::positive},
        Option<Keras2>{"dynamic_growth_steps", &Keras2::dynamic_growth_steps, Range::count}};
  }

  float current = 0;
  std::int64_t counter = 0;
  static constexpr auto state() {
    return std::array{Option<Keras2>{"current_loss_scale", &Keras2::current},
                      Option<Keras2>{"counter", &Keras2::counter}};
  }

  void start() { current = static_cast<float>(initial_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    return detail::tensorflow_step(attempt, 2.0f, dynamic_growth_steps, current, counter);
  }
};

/// keras.optimizers.LossScaleOptimizer of Keras 3.
struct Keras3 {
  static constexpr Info info = {
      .name = "keras3",
      .framework = "Keras 3, keras.optimizers.LossScaleOptimizer",
      .source = "keras src/optimizers/loss_scale_optimizer.py 3422977a",
      .quirk = "neither floor nor ceiling: the scale may fall to 0, or grow to infinity and stay",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_scale",
      .interval = "dynamic_growth_steps"};

  double initial_scale = 32768;
  std::int64_t dynamic_growth_steps = 2000;
  static constexpr auto settings() {
    return std::array{
        Option<Keras3>{"initial_scale", &Keras3::initial_scale, Range::positive},
        Option<Keras3>{"dynamic_growth_steps", &Keras3::dynamic_growth_steps, Range::count}};
  }

  float current = 0;
  std::int64_t step_counter = 0;
  static constexpr auto state() {
    return std::array{Option<Keras3>{"dynamic_scale", &Keras3::current},
                      Option<Keras3>{"step_counter", &Keras3::step_counter}};
  }

  void start() { current = static_cast<float>(initial_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      step_counter = 0;
      current *= 0.5f;
      return {Action::skip};
    }
    if (step_counter == dynamic_growth_steps - 1) {
      step_counter = 0;
      current *= 2;
    } else {
      ++step_counter;
    }
    return {Action::apply};
  }
};

/// tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager. The framework has no defaults for
/// the first two settings; the defaults here are its successor's.
struct TfContrib {
  static constexpr Info info = {
      .name = "tf-contrib",
      .framework = "TensorFlow 1, tf.contrib ExponentialUpdateLossScaleManager",
      .source = "tensorflow contrib/mixed_precision/python/loss_scale_manager.py 813c55a9",
      .quirk =
          "bad steps add up over good ones: only a change of the scale clears their count; "
          "the scale is no power of two after a backoff; floor of 1",
      .arithmetic = Arithmetic::binary32,
      .initial = "init_loss_scale",
      .interval = "incr_every_n_steps"};
  static constexpr double fixed_floor() { return 1; }

  double init_loss_scale = 32768;
  std::int64_t incr_every_n_steps = 2000, decr_every_n_nan_or_inf = 2;
  double incr_ratio = 2, decr_ratio = 0.8;
  static constexpr auto settings() {
    using T = TfContrib;
    return std::array{
        Option<T>{"init_loss_scale", &T::init_loss_scale, Range::positive},
        Option<T>{"incr_every_n_steps", &T::incr_every_n_steps, Range::count},
        Option<T>{"decr_every_n_nan_or_inf", &T::decr_every_n_nan_or_inf, Range::count},
        Option<T>{"incr_ratio", &T::incr_ratio, Range::positive},
        Option<T>{"decr_ratio", &T::decr_ratio, Range::positive}};
  }

  float current = 0;
  std::int64_t good_steps = 0, bad_steps = 0;
  static constexpr auto state() {
    using T = TfContrib;
    return std::array{Option<T>{"loss_scale", &T::current}, Option<T>{"good_steps", &T::good_steps},
                      Option<T>{"bad_steps", &T::bad_steps}};
  }

  void start() { current = static_cast<float>(init_loss_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      good_steps = 0;
      if (++bad_steps >= decr_every_n_nan_or_inf) {
        current = std::max(1.0f, current * static_cast<float>(decr_ratio));
        bad_steps = 0;
      }
      return {Action::skip};
    }
    if (++good_steps >= incr_every_n_steps) {
      const float grown = current * static_cast<float>(incr_ratio);
      if (std::isfinite(grown)) current = grown;
      good_steps = bad_steps = 0;  // also if growth is rejected
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
