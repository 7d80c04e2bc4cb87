// SPDX-License-Identifier: Apache-2.0
// torch.amp.GradScaler.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// The kernel amp_update_scale: binary32 scale, binary64 factors, one rounding per change.
struct Torch {
  static constexpr Info info = {
      .name = "torch",
      .framework = "PyTorch, torch.amp.GradScaler",
      .source = "pytorch torch/amp/grad_scaler.py 0202916b, AmpGradScalerKernels.cpp 174170e8",
      .quirk = "no floor: the scale may fall to 0; growth that would not be finite is refused",
      .arithmetic = Arithmetic::binary32,
      .initial = "init_scale",
      .interval = "growth_interval"};

  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  static constexpr auto settings() {
    return std::array{Option<Torch>{"init_scale", &Torch::init_scale, Range::positive},
                      Option<Torch>{"growth_factor", &Torch::growth_factor, Range::positive},
                      Option<Torch>{"backoff_factor", &Torch::backoff_factor, Range::positive},
                      Option<Torch>{"growth_interval", &Torch::growth_interval, Range::count}};
  }

  float current = 0;
  std::int64_t growth_tracker = 0;
  static constexpr auto state() {
    return std::array{Option<Torch>{"scale", &Torch::current},
                      Option<Torch>{"growth_tracker", &Torch::growth_tracker}};
  }

  void start() { current = static_cast<float>(init_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (attempt.nonfinite) {
      current = static_cast<float>(current * backoff_factor);
      growth_tracker = 0;
      return {Action::skip};
    }
    if (++growth_tracker == growth_interval) {
      const float grown = static_cast<float>(current * growth_factor);
      if (std::isfinite(grown)) current = grown;
      growth_tracker = 0;
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
