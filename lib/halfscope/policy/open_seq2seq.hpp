// SPDX-License-Identifier: Apache-2.0
// Automatic loss scaling of NVIDIA's OpenSeq2Seq. All variables are binary32.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// BackoffScaler. Its graph does not order the reads of the iteration counter relative to the
/// increment; `iteration_read` selects the order.
struct Os2sBackoff {
  static constexpr Info info = {
      .name = "os2s-backoff",
      .framework = "OpenSeq2Seq, BackoffScaler",
      .source = "OpenSeq2Seq open_seq2seq/optimizers/automatic_loss_scaler.py 8681d381",
      .quirk =
          "starts at scale_max; whether growth comes one step earlier is a race in the graph; "
          "floor of 1, ceiling of 2^14",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_scale",
      .interval = "step_window",
      .floor = "scale_min",
      .ceiling = "scale_max"};

  std::optional<double> initial_scale;  ///< empty: scale_max, as in the framework
  double scale_min = 1, scale_max = 16384, step_factor = 2;
  std::int64_t step_window = 2000;
  std::string_view iteration_read = "before";  ///< "before" or "after" the increment
  static constexpr std::array<std::string_view, 2> reads = {"before", "after"};
  static constexpr auto settings() {
    using T = Os2sBackoff;
    return std::array{Option<T>{"initial_scale", &T::initial_scale, Range::positive},
                      Option<T>{"scale_min", &T::scale_min, Range::positive},
                      Option<T>{"scale_max", &T::scale_max, Range::positive},
                      Option<T>{"step_factor", &T::step_factor, Range::positive},
                      Option<T>{"step_window", &T::step_window, Range::count},
                      Option<T>{"iteration_read", &T::iteration_read, Range::any, reads}};
  }

  float current = 0;
  std::int64_t iteration = 0, last_overflow_iteration = -1;
  static constexpr auto state() {
    using T = Os2sBackoff;
    return std::array{Option<T>{"scale", &T::current}, Option<T>{"iteration", &T::iteration},
                      Option<T>{"last_overflow_iteration", &T::last_overflow_iteration}};
  }

  void start() { current = static_cast<float>(initial_scale.value_or(scale_max)); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const std::int64_t seen = iteration + (iteration_read == "after" ? 1 : 0);
    const float factor = static_cast<float>(step_factor);
    ++iteration;
    if (attempt.nonfinite) {
      current = clipped(current / factor);
      last_overflow_iteration = seen;
      return {Action::skip};
    }
    if ((seen - last_overflow_iteration) % step_window == 0) current = clipped(current * factor);
    return {Action::apply};
  }

 private:
  float clipped(float value) const {
    return std::max(std::min(value, static_cast<float>(scale_max)), static_cast<float>(scale_min));
  }
};

/// LogMaxScaler: the scale at which log2 of the largest magnitude, assumed to be normally
/// distributed, stays below 16 with a probability of 99.9 %. An overflow counts as log2 = 2^log_max
/// = 65536 instead of log_max, presumably a mistake in the framework: one overflow keeps the scale
/// at scale_min for some 11,000 steps.
struct Os2sLogMax {
  static constexpr Info info = {
      .name = "os2s-logmax",
      .framework = "OpenSeq2Seq, LogMaxScaler",
      .source = "OpenSeq2Seq open_seq2seq/optimizers/automatic_loss_scaler.py 8681d381",
      .quirk =
          "one overflow pins the scale at 1 for some 11,000 steps; gradients that are all zero "
          "make it NaN for good",
      .arithmetic = Arithmetic::binary32,
      .needs = Needs::magnitude,
      .floor = "scale_min"};

  double scale_min = 1, scale_max = 16384, log_max = 16, beta1 = 0.99, beta2 = 0.999;
  double overflow_std_dev = 3.09;
  static constexpr auto settings() {
    using T = Os2sLogMax;
    return std::array{Option<T>{"scale_min", &T::scale_min, Range::positive},
                      Option<T>{"scale_max", &T::scale_max, Range::positive},
                      Option<T>{"log_max", &T::log_max},
                      Option<T>{"beta1", &T::beta1, Range::non_negative},
                      Option<T>{"beta2", &T::beta2, Range::non_negative},
                      Option<T>{"overflow_std_dev", &T::overflow_std_dev}};
  }

  float current = 0, x_hat = 0, slow_x_hat = 0, xsquared_hat = 0;
  float b1_correction = 1, b2_correction = 1;
  static constexpr auto state() {
    using T = Os2sLogMax;
    return std::array{Option<T>{"scale", &T::current},
                      Option<T>{"x_hat", &T::x_hat},
                      Option<T>{"slow_x_hat", &T::slow_x_hat},
                      Option<T>{"xsquared_hat", &T::xsquared_hat},
                      Option<T>{"b1_correction", &T::b1_correction},
                      Option<T>{"b2_correction", &T::b2_correction}};
  }

  void start() { current = 1; }
  double scale() const { return current; }  ///< can be NaN

  Decision advance(const Attempt& attempt) {
    // With a NaN scale every gradient is NaN.
    const bool nonfinite = attempt.nonfinite || std::isnan(current);
    const float x = nonfinite ? std::pow(2.0f, static_cast<float>(log_max))
                              : std::log(static_cast<float>(attempt.max_abs)) / std::log(2.0f);
    const float mean = followed(x, beta1, x_hat, b1_correction);
    const float slow_mean = followed(x, beta2, slow_x_hat, b2_correction);
    xsquared_hat =
        static_cast<float>(beta2) * xsquared_hat + static_cast<float>(1 - beta2) * (x * x);
    const float variance = xsquared_hat / (1 - b2_correction) - slow_mean * slow_mean;
    const float deviation = std::sqrt(variance < 0 ? 0 : variance);  // NaN stays NaN
    const float cutoff = deviation * static_cast<float>(overflow_std_dev) + mean;
    const float proposed = std::pow(2.0f, 16 - cutoff);
    const float capped =
        proposed > static_cast<float>(scale_max) ? static_cast<float>(scale_max) : proposed;
    current = capped < static_cast<float>(scale_min) ? static_cast<float>(scale_min) : capped;
    return {nonfinite ? Action::skip : Action::apply};
  }

 private:
  /// Adds x to an exponential average and returns the average corrected for its start at 0.
  static float followed(float x, double beta, float& average, float& correction) {
    average = static_cast<float>(beta) * average + static_cast<float>(1 - beta) * x;
    correction *= static_cast<float>(beta);
    return average / (1 - correction);
  }
};

}  // namespace halfscope::policy
