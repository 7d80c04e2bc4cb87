// SPDX-License-Identifier: Apache-2.0
// Policies of Megatron-LM and ColossalAI: hysteresis that is reset only when the scale grows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// Megatron-LM's DynamicGradScaler, with the defaults of its command line. Scale, factors and floor
/// are binary32.
struct Megatron {
  static constexpr Info info = {
      .name = "megatron",
      .framework = "Megatron-LM, DynamicGradScaler",
      .source = "Megatron-LM megatron/core/optimizer/grad_scaler.py d98e8a64",
      .quirk =
          "hysteresis refills only at growth, not at a clean step as its documentation says; "
          "nothing caps growth, and an infinite scale stays infinite",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_scale",
      .interval = "growth_interval",
      .floor = "min_scale"};

  double initial_scale = 0x1p32, min_scale = 1, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 1000, hysteresis = 2;
  static constexpr auto settings() {
    return std::array{
        Option<Megatron>{"initial_scale", &Megatron::initial_scale, Range::positive},
        Option<Megatron>{"min_scale", &Megatron::min_scale, Range::positive},
        Option<Megatron>{"growth_factor", &Megatron::growth_factor, Range::positive},
        Option<Megatron>{"backoff_factor", &Megatron::backoff_factor, Range::positive},
        Option<Megatron>{"growth_interval", &Megatron::growth_interval, Range::count},
        Option<Megatron>{"hysteresis", &Megatron::hysteresis, Range::count}};
  }

  float current = 0;
  std::int64_t growth_tracker = 0, hysteresis_tracker = 0;
  static constexpr auto state() {
    return std::array{Option<Megatron>{"scale", &Megatron::current},
                      Option<Megatron>{"growth_tracker", &Megatron::growth_tracker},
                      Option<Megatron>{"hysteresis_tracker", &Megatron::hysteresis_tracker}};
  }

  void start() {
    current = static_cast<float>(initial_scale);
    hysteresis_tracker = hysteresis;
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      growth_tracker = 0;
      if (--hysteresis_tracker <= 0) {
        current =
            std::max(current * static_cast<float>(backoff_factor), static_cast<float>(min_scale));
      }
      return {Action::skip};
    }
    if (++growth_tracker == growth_interval) {
      growth_tracker = 0;
      hysteresis_tracker = hysteresis;
      current *= static_cast<float>(growth_factor);
    }
    return {Action::apply};
  }
};

/// ColossalAI's DynamicGradScaler: a binary32 tensor, to which PyTorch converts the Python factors.
/// Its FP16 mixin passes min_scale 1 and max_scale 2^32.
struct ColossalAi {
  static constexpr Info info = {
      .name = "colossalai",
      .framework = "ColossalAI, DynamicGradScaler",
      .source = "ColossalAI naive_amp/grad_scaler/dynamic_grad_scaler.py 4f9953be",
      .quirk = "hysteresis refills only at growth; its counters are not in the checkpoint",
      .arithmetic = Arithmetic::binary32,
      .initial = "initial_scale",
      .interval = "growth_interval",
      .floor = "min_scale",
      .ceiling = "max_scale"};

  using Self = ColossalAi;
  double initial_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 1000;
  std::optional<double> min_scale = std::nullopt, max_scale = std::nullopt;
  std::int64_t hysteresis = 2;
  static constexpr auto settings() {
    return std::array{Option<Self>{"initial_scale", &Self::initial_scale, Range::positive},
                      Option<Self>{"growth_factor", &Self::growth_factor, Range::positive},
                      Option<Self>{"backoff_factor", &Self::backoff_factor, Range::positive},
                      Option<Self>{"growth_interval", &Self::growth_interval, Range::count},
                      Option<Self>{"min_scale", &Self::min_scale, Range::positive},
                      Option<Self>{"max_scale", &Self::max_scale, Range::positive},
                      Option<Self>{"hysteresis", &Self::hysteresis, Range::count}};
  }

  float current = 0;
  std::int64_t growth_step = 0, hysteresis_step = 0;
  static constexpr auto state() {
    return std::array{Option<Self>{"scale", &Self::current},
                      Option<Self>{"growth_step", &Self::growth_step},
                      Option<Self>{"hysteresis_step", &Self::hysteresis_step}};
  }

  void start() { current = static_cast<float>(initial_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      growth_step = 0;
      if (++hysteresis_step >= hysteresis) {
        current *= static_cast<float>(backoff_factor);
        if (min_scale) current = std::max(current, static_cast<float>(*min_scale));
      }
      return {Action::skip};
    }
    if (++growth_step == growth_interval) {
      growth_step = 0;
      hysteresis_step = 0;
      current *= static_cast<float>(growth_factor);
      if (max_scale) current = std::min(current, static_cast<float>(*max_scale));
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
