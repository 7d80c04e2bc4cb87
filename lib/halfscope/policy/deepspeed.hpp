// SPDX-License-Identifier: Apache-2.0
// Policies of DeepSpeed: the scaler of ZeRO, and the scaler of FP16_Optimizer without ZeRO.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// Each setting has two names: the class's argument, and the key in the fp16 section of the
/// configuration file (initial_scale_power, loss_scale_window, hysteresis, min_loss_scale;
/// consecutive_hysteresis is in both). The defaults are the class's, which apply if that section
/// has none of these keys. If it has one of them, the engine replaces the defaults of missing
/// settings by its own: init_scale 2^16 and delayed_shift 2. consecutive_hysteresis counts as a key
/// of the file unless an argument of the class is given too. After start() all values are in the
/// members with the class's names.
struct DeepSpeedSettings {
  double init_scale = 0x1p32, scale_factor = 2, min_scale = 1;
  std::int64_t scale_window = 1000, delayed_shift = 1;
  bool consecutive_hysteresis = false, raise_error_at_min_scale = true;
  std::optional<double> initial_scale_power = std::nullopt, loss_scale_window = std::nullopt,
                        hysteresis = std::nullopt, min_loss_scale = std::nullopt;

  /// Settings that were given explicitly, until start().
  struct Given {
    bool init_scale = false, scale_window = false, min_scale = false, delayed_shift = false;
    bool other_argument = false, consecutive = false, file = false;
  } was_given = {};

  /// The configuration file has a power of two as the initial scale, and integers.
  static constexpr bool whole_numbers = true;

  void given(std::string_view key) {
    Given& all = was_given;
    if (key == "init_scale") all.init_scale = true;
    if (key == "scale_window") all.scale_window = true;
    if (key == "min_scale") all.min_scale = true;
    if (key == "delayed_shift") all.delayed_shift = true;
    if (key == "scale_factor" || key == "raise_error_at_min_scale") all.other_argument = true;
    if (key == "consecutive_hysteresis") all.consecutive = true;
    if (key == "initial_scale_power" || key == "loss_scale_window" || key == "hysteresis" ||
        key == "min_loss_scale") {
      all.file = true;
    }
  }

  /// Moves all values to the members with the class's names. A second call has no effect.
  void resolve(std::string_view policy) {
    const Given& all = was_given;
    const bool arguments = all.init_scale || all.scale_window || all.min_scale ||
                           all.delayed_shift || all.other_argument;
    if (all.file || (all.consecutive && !arguments)) {
      if (!all.init_scale) init_scale = 65536;
      if (!all.delayed_shift) delayed_shift = 2;
    }
    if (initial_scale_power) initial_scale_power = std::exp2(*initial_scale_power);
    move(initial_scale_power, init_scale, all.init_scale, policy, "init_scale",
         "initial_scale_power");
    move(loss_scale_window, scale_window, all.scale_window, policy, "scale_window",
         "loss_scale_window");
    move(hysteresis, delayed_shift, all.delayed_shift, policy, "delayed_shift", "hysteresis");
    move(min_loss_scale, min_scale, all.min_scale, policy, "min_scale", "min_loss_scale");
    was_given = {};
  }

 private:
  template <class T>
  static void move(std::optional<double>& from, T& to, bool both, std::string_view policy,
                   std::string_view argument, std::string_view key) {
    if (!from) return;
    const std::string place = "policy " + std::string(policy) + ": " + std::string(key);
    if (both) {
      throw std::invalid_argument(place + " and " + std::string(argument) +
                                  " are the same setting; give one of them");
    }
    if (!std::isfinite(*from)) {
      throw std::invalid_argument(place + ": 2 to that power is not finite; expected at most 1023");
    }
    to = static_cast<T>(*from);
    from.reset();
  }
};

/// DynamicLossScaler, as used by ZeRO 1 to 3.
struct DeepSpeed : DeepSpeedSettings {
  static constexpr Info info = {
      .name = "deepspeed",
      .framework = "DeepSpeed, DynamicLossScaler (ZeRO)",
      .source = "DeepSpeed deepspeed/runtime/fp16/loss_scaler.py 38327e07",
      .quirk =
          "an overflow at the floor ends training; any key of the configuration file changes "
          "the defaults of the others; hysteresis refills only at growth unless "
          "consecutive_hysteresis",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window",
      .floor = "min_scale"};

  using Self = DeepSpeed;
  static constexpr auto settings() {
    return std::array{
        Option<Self>{"init_scale", &Self::init_scale, Range::positive},
        Option<Self>{"scale_factor", &Self::scale_factor, Range::positive},
        Option<Self>{"scale_window", &Self::scale_window, Range::count},
        Option<Self>{"min_scale", &Self::min_scale, Range::non_negative},
        Option<Self>{"delayed_shift", &Self::delayed_shift, Range::count},
        Option<Self>{"consecutive_hysteresis", &Self::consecutive_hysteresis},
        Option<Self>{"raise_error_at_min_scale", &Self::raise_error_at_min_scale},
        Option<Self>{"initial_scale_power", &Self::initial_scale_power, Range::non_negative},
        Option<Self>{"loss_scale_window", &Self::loss_scale_window, Range::count},
        Option<Self>{"hysteresis", &Self::hysteresis, Range::count},
        Option<Self>{"min_loss_scale", &Self::min_loss_scale, Range::non_negative}};
  }

  double current = 0;
  std::int64_t iteration = 0, last_overflow = -1, hysteresis_left = 0;
  static constexpr auto state() {
    return std::array{Option<Self>{"cur_scale", &Self::current},
                      Option<Self>{"cur_iter", &Self::iteration},
                      Option<Self>{"last_overflow_iter", &Self::last_overflow},
                      Option<Self>{"cur_hysteresis", &Self::hysteresis_left}};
  }

  void start() {
    resolve(info.name);
    current = init_scale;
    hysteresis_left = delayed_shift;
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const std::int64_t now = iteration++;
    return attempt.nonfinite ? overflow(now) : clean(now);
  }

 private:
  Decision overflow(std::int64_t now) {
    last_overflow = now;
    if (delayed_shift != 1 && hysteresis_left != 1) {
      --hysteresis_left;
      return {Action::skip};
    }
    if (current == min_scale && raise_error_at_min_scale) {
      return {Action::skip,
              "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
              "Exiting run."};
    }
    current = std::max(current / scale_factor, min_scale);
    return {Action::skip};
  }

  Decision clean(std::int64_t now) {
    const bool grows = (now - last_overflow) % scale_window == 0;
    if (consecutive_hysteresis || grows) hysteresis_left = delayed_shift;
    if (grows) current *= scale_factor;
    return {Action::apply};
  }
};

/// FP16_Optimizer, fused and unfused, without ZeRO. The engine always passes 2^16, whatever the
/// configuration file says; the factor is always 2.
struct DeepSpeedFused : DeepSpeedSettings {
  static constexpr Info info = {
      .name = "deepspeed-fused",
      .framework = "DeepSpeed, FP16_Optimizer without ZeRO",
      .source = "DeepSpeed deepspeed/runtime/fp16/fused_optimizer.py 38327e07",
      .quirk =
          "the first growth, and that after an overflow, takes one clean step more than the "
          "next; hysteresis is taken and never looked at; never ends training",
      .arithmetic = Arithmetic::binary64,
      .initial = "init_scale",
      .interval = "scale_window",
      .floor = "min_scale"};

  DeepSpeedFused() { init_scale = 65536; }

  using Self = DeepSpeedFused;
  static constexpr auto settings() {
    return std::array{
        Option<Self>{"init_scale", &Self::init_scale, Range::positive},
        Option<Self>{"scale_window", &Self::scale_window, Range::count},
        Option<Self>{"min_scale", &Self::min_scale, Range::non_negative},
        Option<Self>{"delayed_shift", &Self::delayed_shift, Range::count},
        Option<Self>{"consecutive_hysteresis", &Self::consecutive_hysteresis},
        Option<Self>{"initial_scale_power", &Self::initial_scale_power, Range::non_negative},
        Option<Self>{"loss_scale_window", &Self::loss_scale_window, Range::count},
        Option<Self>{"hysteresis", &Self::hysteresis, Range::count},
        Option<Self>{"min_loss_scale", &Self::min_loss_scale, Range::non_negative}};
  }

  double current = 0;
  std::int64_t iteration = 0, last_overflow = -1;
  static constexpr auto state() {
    return std::array{Option<Self>{"cur_scale", &Self::current},
                      Option<Self>{"cur_iter", &Self::iteration},
                      Option<Self>{"last_overflow_iter", &Self::last_overflow}};
  }

  void start() {
    resolve(info.name);
    current = init_scale;
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const std::int64_t now = iteration++;
    if (attempt.nonfinite) {
      current = std::max(current / 2, min_scale);
      last_overflow = now;
      return {Action::skip};
    }
    const std::int64_t stable = now - last_overflow - 1;
    if (stable > 0 && stable % scale_window == 0) current *= 2;
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
