// SPDX-License-Identifier: Apache-2.0
// Loss scaling in JAX. Scales are binary32 arrays. The caller decides whether to apply a step; in
// each library's example it skips a step with nonfinite gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// jmp.DynamicLossScale. Its loss_scale has no default; 2^15 is from its documentation.
struct Jmp {
  static constexpr Info info = {
      .name = "jmp",
      .framework = "JAX, jmp.DynamicLossScale",
      .source = "jmp jmp/_src/loss_scale.py 260e5ba0",
      .quirk = "min_loss_scale is lost where the object passes through a pytree, and is 1 then",
      .arithmetic = Arithmetic::binary32,
      .initial = "loss_scale",
      .interval = "period",
      .floor = "min_loss_scale"};

  double initial = 32768;
  std::int64_t period = 2000;
  double factor = 2, min_loss_scale = 1;
  static constexpr auto settings() {
    return std::array{Option<Jmp>{"loss_scale", &Jmp::initial, Range::positive},
                      Option<Jmp>{"period", &Jmp::period, Range::count},
                      Option<Jmp>{"factor", &Jmp::factor, Range::positive},
                      Option<Jmp>{"min_loss_scale", &Jmp::min_loss_scale, Range::non_negative}};
  }

  float current = 0;
  std::int64_t counter = 0;
  static constexpr auto state() {
    return std::array{Option<Jmp>{"loss_scale", &Jmp::current},
                      Option<Jmp>{"counter", &Jmp::counter}};
  }

  void start() { current = static_cast<float>(initial); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      current = std::max(static_cast<float>(min_loss_scale), current / static_cast<float>(factor));
      counter = 0;
      return {Action::skip};
    }
    if (counter == period - 1) {
      const float grown = current * static_cast<float>(factor);
      if (std::isfinite(grown)) current = grown;
    }
    counter = (counter + 1) % period;
    return {Action::apply};
  }
};

/// flax.training.dynamic_scale.DynamicScale.
struct Flax {
  static constexpr Info info = {
      .name = "flax",
      .framework = "JAX, flax.training.dynamic_scale.DynamicScale",
      .source = "flax flax/training/dynamic_scale.py 18f8f311",
      .quirk =
          "needs growth_interval + 1 clean steps; at its ceiling, the largest binary32 number, "
          "the scale is no power of two",
      .arithmetic = Arithmetic::binary32,
      .initial = "scale",
      .interval = "growth_interval",
      .floor = "minimum_scale"};

  double growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  double initial = 65536;
  std::optional<double> minimum_scale = 0x1p-126;  ///< None: no floor
  static constexpr auto settings() {
    return std::array{Option<Flax>{"growth_factor", &Flax::growth_factor, Range::positive},
                      Option<Flax>{"backoff_factor", &Flax::backoff_factor, Range::positive},
                      Option<Flax>{"growth_interval", &Flax::growth_interval, Range::count},
                      Option<Flax>{"scale", &Flax::initial, Range::positive},
                      Option<Flax>{"minimum_scale", &Flax::minimum_scale, Range::non_negative}};
  }

  float current = 0;
  std::int64_t fin_steps = 0;
  static constexpr auto state() {
    return std::array{Option<Flax>{"scale", &Flax::current},
                      Option<Flax>{"fin_steps", &Flax::fin_steps}};
  }

  void start() { current = static_cast<float>(initial); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      current *= static_cast<float>(backoff_factor);
      if (minimum_scale) current = std::max(current, static_cast<float>(*minimum_scale));
      fin_steps = 0;
      return {Action::skip};
    }
    if (fin_steps == growth_interval) {  // tested before this step is counted
      current =
          std::min(current * static_cast<float>(growth_factor), std::numeric_limits<float>::max());
      fin_steps = 0;
    } else {
      ++fin_steps;
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
