// SPDX-License-Identifier: Apache-2.0
// paddle.amp.GradScaler.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// The scale and its factors are binary32. In a static graph the operator update_loss_scaling
/// decides: it has a floor of 1 and rejects growth to infinity. In a dynamic graph the class
/// decides, without floor and without that check.
struct Paddle {
  static constexpr Info info = {
      .name = "paddle",
      .framework = "PaddlePaddle, paddle.amp.GradScaler",
      .source =
          "Paddle python/paddle/amp/grad_scaler.py 00816fcb, update_loss_scaling_op.h 11b8315f",
      .quirk =
          "only consecutive bad steps count for a backoff, though documented as accumulated; "
          "floor of 1 in a static graph alone",
      .arithmetic = Arithmetic::binary32,
      .initial = "init_loss_scaling",
      .interval = "incr_every_n_steps"};

  double init_loss_scaling = 65536, incr_ratio = 2, decr_ratio = 0.5;
  std::int64_t incr_every_n_steps = 2000, decr_every_n_nan_or_inf = 1;
  std::string_view graph = "static";
  static constexpr std::array<std::string_view, 2> graphs = {"static", "dynamic"};
  static constexpr auto settings() {
    using T = Paddle;
    return std::array{
        Option<T>{"init_loss_scaling", &T::init_loss_scaling, Range::positive},
        Option<T>{"incr_ratio", &T::incr_ratio, Range::positive},
        Option<T>{"decr_ratio", &T::decr_ratio, Range::positive},
        Option<T>{"incr_every_n_steps", &T::incr_every_n_steps, Range::count},
        Option<T>{"decr_every_n_nan_or_inf", &T::decr_every_n_nan_or_inf, Range::count},
        Option<T>{"graph", &T::graph, Range::any, graphs}};
  }

  float current = 0;
  std::int64_t good_steps = 0, bad_steps = 0;
  static constexpr auto state() {
    return std::array{Option<Paddle>{"scale", &Paddle::current},
                      Option<Paddle>{"incr_count", &Paddle::good_steps},
                      Option<Paddle>{"decr_count", &Paddle::bad_steps}};
  }

  void start() { current = static_cast<float>(init_loss_scaling); }
  double fixed_floor() const { return graph == "static" ? 1 : 0; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      good_steps = 0;
      if (++bad_steps == decr_every_n_nan_or_inf) {
        current *= static_cast<float>(decr_ratio);
        if (graph == "static") current = std::max(1.0f, current);
        bad_steps = 0;
      }
      return {Action::skip};
    }
    bad_steps = 0;
    if (++good_steps == incr_every_n_steps) {
      const float grown = current * static_cast<float>(incr_ratio);
      if (graph == "dynamic" || std::isfinite(grown)) current = grown;
      good_steps = 0;
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
