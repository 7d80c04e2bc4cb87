// SPDX-License-Identifier: Apache-2.0
// Policies of Huawei's MindSpore.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"
#include "halfscope/policy/whole_number.hpp"

namespace halfscope::policy {

/// DynamicLossScaleManager, which computes on the host in Python numbers. Its floor is the integer
/// 1 and its default start the integer 2^24: the scale stays an integer, exact at any size, while
/// it is multiplied by integers. A backoff to above the floor makes it a float. A setting with an
/// integer value counts as an integer.
struct Mindspore {
  static constexpr Info info = {
      .name = "mindspore",
      .framework = "MindSpore, DynamicLossScaleManager",
      .source = "mindspore mindspore/train/loss_scale_manager.py 1cbdf54f",
      .quirk =
          "more than 1000 overflows in a row end the run; floor of 1; no ceiling; an "
          "integer scale beyond the largest float ends the run",
      .initial = "init_loss_scale",
      .interval = "scale_window"};
  static constexpr double fixed_floor() { return 1; }
  static constexpr std::int64_t bad_step_max = 1000;

  double init_loss_scale = 16777216, scale_factor = 2;
  std::int64_t scale_window = 2000;
  static constexpr auto settings() {
    using T = Mindspore;
    return std::array{Option<T>{"init_loss_scale", &T::init_loss_scale, Range::positive},
                      Option<T>{"scale_factor", &T::scale_factor, Range::positive},
                      Option<T>{"scale_window", &T::scale_window, Range::count}};
  }

  double current = 0;
  WholeNumber whole;  ///< the scale if it is an integer; empty: it is a float
  std::int64_t cur_iter = 1, last_overflow_iter = 0, bad_step = 0;
  static constexpr auto state() {
    using T = Mindspore;
    return std::array{Option<T>{"loss_scale", &T::current}, Option<T>{"whole", &T::whole},
                      Option<T>{"cur_iter", &T::cur_iter},
                      Option<T>{"last_overflow_iter", &T::last_overflow_iter},
                      Option<T>{"bad_step", &T::bad_step}};
  }

  void start() {
    current = init_loss_scale;
    whole = is_whole(current) ? whole_number_of(current) : WholeNumber();
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      back_off();
      last_overflow_iter = cur_iter;
      if (++bad_step > bad_step_max) {
        return {Action::skip,
                "RuntimeError: Dynamic loss scale Continuous overflow 1001 times, has exceeded "
                "maximum threshold."};
      }
    } else {
      if ((cur_iter - last_overflow_iter) % scale_window == 0) grow();
      bad_step = 0;
    }
    ++cur_iter;
    // The next step cannot convert an integer scale beyond the largest float.
    if (!whole.empty() && current > std::numeric_limits<double>::max()) {
      return {Action::apply, "OverflowError: int too large to convert to float"};
    }
    return {attempt.nonfinite ? Action::skip : Action::apply};
  }

 private:
  void back_off() {
    current *= 1 / scale_factor;
    whole.clear();
    if (current < 1) whole = whole_number_of(current = 1);
  }
  void grow() {
    if (!is_whole(scale_factor) || scale_factor > 0x1p53) whole.clear();
    if (!whole.empty()) multiply(whole, scale_factor);
    current = whole.empty() ? current * scale_factor : to_double(whole);
  }
};

/// nn.DynamicLossScaleUpdateCell, which computes on the device in binary32.
struct MindsporeCell {
  static constexpr Info info = {
      .name = "mindspore-cell",
      .framework = "MindSpore, nn.DynamicLossScaleUpdateCell",
      .source = "mindspore nn/wrap/loss_scale.py b4fa5acc",
      .quirk = "never ends the run, unlike the manager; floor of 1; no ceiling",
      .arithmetic = Arithmetic::binary32,
      .initial = "loss_scale_value",
      .interval = "scale_window"};
  static constexpr double fixed_floor() { return 1; }

  double loss_scale_value = 16777216, scale_factor = 2;
  std::int64_t scale_window = 2000;
  static constexpr auto settings() {
    using T = MindsporeCell;
    return std::array{Option<T>{"loss_scale_value", &T::loss_scale_value, Range::positive},
                      Option<T>{"scale_factor", &T::scale_factor, Range::positive},
                      Option<T>{"scale_window", &T::scale_window, Range::count}};
  }

  float current = 0;
  std::int64_t cur_iter = 1, last_overflow_iter = 0;
  static constexpr auto state() {
    using T = MindsporeCell;
    return std::array{Option<T>{"loss_scale", &T::current}, Option<T>{"cur_iter", &T::cur_iter},
                      Option<T>{"last_overflow_iter", &T::last_overflow_iter}};
  }

  void start() { current = static_cast<float>(loss_scale_value); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const bool due = scale_window <= cur_iter - last_overflow_iter;
    const float factor = static_cast<float>(scale_factor);
    if (attempt.nonfinite) {
      current = std::max(current * (1 / factor), 1.0f);  // multiplies by the rounded reciprocal
    } else if (due) {
      current *= factor;
    }
    if (attempt.nonfinite || due) last_overflow_iter = cur_iter;
    ++cur_iter;
    return {attempt.nonfinite ? Action::skip : Action::apply};
  }
};

}  // namespace halfscope::policy
