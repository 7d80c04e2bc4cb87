// SPDX-License-Identifier: Apache-2.0
// Policies of NVIDIA apex: amp, the older fp16_utils, and the kernel with hysteresis.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// apex.amp's LossScaler.
struct Apex {
  static constexpr Info info = {
      .name = "apex",
      .framework = "NVIDIA apex, amp LossScaler",
      .source = "apex apex/amp/scaler.py e13873de",
      .quirk =
          "scale_factor is ignored (always 2); without a floor the scale may fall to 0, and "
          "unscaling then divides by zero; a static scale is never checked for overflow",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window",
      .floor = "min_loss_scale",
      .ceiling = "max_loss_scale"};

  std::optional<double> loss_scale = std::nullopt;  ///< static scale; None: "dynamic"
  double init_scale = 65536, scale_factor = 2;
  std::int64_t scale_window = 2000;
  std::optional<double> min_loss_scale = std::nullopt;
  double max_loss_scale = 0x1p24;
  static constexpr auto settings() {
    return std::array{Option<Apex>{"loss_scale", &Apex::loss_scale, Range::positive},
                      Option<Apex>{"init_scale", &Apex::init_scale, Range::positive},
                      Option<Apex>{"scale_factor", &Apex::scale_factor, Range::positive},
                      Option<Apex>{"scale_window", &Apex::scale_window, Range::count},
                      Option<Apex>{"min_loss_scale", &Apex::min_loss_scale, Range::non_negative},
                      Option<Apex>{"max_loss_scale", &Apex::max_loss_scale, Range::positive}};
  }

  double current = 0;
  std::int64_t unskipped = 0;
  static constexpr auto state() {
    return std::array{Option<Apex>{"loss_scale", &Apex::current},
                      Option<Apex>{"unskipped", &Apex::unskipped}};
  }

  void start() { current = loss_scale ? *loss_scale : std::min(max_loss_scale, init_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (loss_scale) return {Action::apply};
    // apex computes 1. / loss_scale before it tests anything.
    if (current == 0) return {Action::skip, "ZeroDivisionError: float division by zero"};
    if (attempt.nonfinite) {
      current = std::max(min_loss_scale.value_or(0), current / 2);
      unskipped = 0;
      return {Action::skip};
    }
    if (++unskipped == scale_window) {
      current = std::min(max_loss_scale, current * 2);
      unskipped = 0;
    }
    return {Action::apply};
  }
};

/// apex.fp16_utils' DynamicLossScaler.
struct ApexLegacy {
  static constexpr Info info = {
      .name = "apex-legacy",
      .framework = "NVIDIA apex, fp16_utils.DynamicLossScaler",
      .source = "apex apex/fp16_utils/loss_scaler.py e13873de",
      .quirk = "the floor is always 1; nothing caps growth, and an infinite scale stays infinite",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window"};

  static constexpr double fixed_floor() { return 1; }

  double init_scale = 0x1p32, scale_factor = 2;
  std::int64_t scale_window = 1000;
  static constexpr auto settings() {
    return std::array{
        Option<ApexLegacy>{"init_scale", &ApexLegacy::init_scale, Range::positive},
        Option<ApexLegacy>{"scale_factor", &ApexLegacy::scale_factor, Range::positive},
        Option<ApexLegacy>{"scale_window", &ApexLegacy::scale_window, Range::count}};
  }

  double current = 0;
  std::int64_t iteration = 0, last_overflow = -1;
  static constexpr auto state() {
    return std::array{Option<ApexLegacy>{"cur_scale", &ApexLegacy::current},
                      Option<ApexLegacy>{"cur_iter", &ApexLegacy::iteration},
                      Option<ApexLegacy>{"last_overflow_iter", &ApexLegacy::last_overflow}};
  }

  void start() { current = init_scale; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const std::int64_t now = iteration++;
    if (attempt.nonfinite) {
      current = std::max(current / scale_factor, fixed_floor());
      last_overflow = now;
      return {Action::skip};
    }
    if ((now - last_overflow) % scale_window == 0) current *= scale_factor;
    return {Action::apply};
  }
};

/// apex's kernel update_scale_hysteresis: the scale is binary32, the factors binary64. The kernel
/// has no defaults: factors and interval are torch's here, hysteresis is Megatron's.
struct ApexHysteresis {
  static constexpr Info info = {
      .name = "apex-hysteresis",
      .framework = "NVIDIA apex, update_scale_hysteresis",
      .source = "apex csrc/update_scale_hysteresis.cu 6424da3b",
      .quirk = "an overflow is tolerated after any clean step: hysteresis counts consecutive ones",
      .arithmetic = Arithmetic::binary32,
      .initial = "init_scale",
      .interval = "growth_interval"};

  using Self = ApexHysteresis;
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000, hysteresis = 2;
  static constexpr auto settings() {
    return std::array{Option<Self>{"init_scale", &Self::init_scale, Range::positive},
                      Option<Self>{"growth_factor", &Self::growth_factor, Range::positive},
                      Option<Self>{"backoff_factor", &Self::backoff_factor, Range::positive},
                      Option<Self>{"growth_interval", &Self::growth_interval, Range::count},
                      Option<Self>{"hysteresis", &Self::hysteresis, Range::count}};
  }

  float current = 0;
  std::int64_t growth_tracker = 0, hysteresis_tracker = 0;
  static constexpr auto state() {
    return std::array{Option<Self>{"current_scale", &Self::current},
                      Option<Self>{"growth_tracker", &Self::growth_tracker},
                      Option<Self>{"hysteresis_tracker", &Self::hysteresis_tracker}};
  }

  void start() {
    current = static_cast<float>(init_scale);
    hysteresis_tracker = hysteresis;
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      growth_tracker = 0;
      if (--hysteresis_tracker <= 0) current = static_cast<float>(current * backoff_factor);
      return {Action::skip};
    }
    if (++growth_tracker == growth_interval) {
      const float grown = static_cast<float>(current * growth_factor);
      if (std::isfinite(grown)) current = grown;
      growth_tracker = 0;
    }
    hysteresis_tracker = hysteresis;
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
