// SPDX-License-Identifier: Apache-2.0
// Delayed scaling of NVIDIA's Transformer Engine, for FP8.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// recipe.DelayedScaling for one gradient tensor: the scale maps the largest magnitude of the last
/// steps to the largest number of the FP8 format. Casts saturate, so no step is skipped.
struct TeDelayed {
  static constexpr Info info = {
      .name = "te-delayed",
      .framework = "Transformer Engine, recipe.DelayedScaling (FP8)",
      .source =
          "TransformerEngine common/recipe, pytorch/quantization.py, delayed_scaling.cu "
          "d0067d0d",
      .quirk =
          "a magnitude that is not finite stays in the history and freezes the scale for "
          "amax_history_len steps; a magnitude of 0 is not kept; never skips",
      .arithmetic = Arithmetic::binary32,
      .needs = Needs::tensors};

  std::int64_t margin = 0;
  std::string_view fp8_format = "HYBRID";
  std::int64_t amax_history_len = 1024;
  std::string_view amax_compute_algo = "max";
  static constexpr std::array<std::string_view, 3> formats = {"E4M3", "E5M2", "HYBRID"};
  static constexpr std::array<std::string_view, 2> algorithms = {"max", "most_recent"};
  static constexpr auto settings() {
    using T = TeDelayed;
    return std::array{
        Option<T>{"margin", &T::margin},
        Option<T>{"fp8_format", &T::fp8_format, Range::any, formats},
        Option<T>{"amax_history_len", &T::amax_history_len, Range::count},
        Option<T>{"amax_compute_algo", &T::amax_compute_algo, Range::any, algorithms}};
  }

  float current = 1;
  /// The magnitudes among the last amax_history_len that no later magnitude reaches, with the steps
  /// at which they occurred; the first is the largest.
  std::vector<double> amax_history, seen_at;
  std::int64_t now = 0;
  static constexpr auto state() {
    using T = TeDelayed;
    return std::array{Option<T>{"scale", &T::current}, Option<T>{"amax_history", &T::amax_history},
                      Option<T>{"seen_at", &T::seen_at}, Option<T>{"now", &T::now}};
  }

  void start() { current = 1; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const float seen = static_cast<float>(attempt.max_abs);
    if (seen == 0) return {Action::apply};  // the kernel neither shifts the history nor rescales
    remember(std::isnan(seen) ? std::numeric_limits<double>::infinity() : double{seen});
    const float amax = amax_compute_algo == "max" ? static_cast<float>(amax_history.front()) : seen;
    if (!std::isfinite(amax)) return {Action::apply};
    const float fp8_max = fp8_format == "E4M3" ? 448 : 57344;  // HYBRID uses E5M2 for gradients
    const int down = static_cast<int>(std::clamp<std::int64_t>(margin, -1000, 1000));
    const float fitted = std::ldexp(fp8_max / amax, -down);
    current = std::isinf(fitted) ? std::numeric_limits<float>::max() : fitted;
    return {Action::apply};
  }

 private:
  void remember(double amax) {
    seen_at.resize(amax_history.size());  // a restored state may have any size
    while (!amax_history.empty() && !(amax_history.back() > amax)) {
      amax_history.pop_back();
      seen_at.pop_back();
    }
    amax_history.push_back(amax);
    seen_at.push_back(static_cast<double>(now));
    if (static_cast<double>(now - amax_history_len) >= seen_at.front()) {
      amax_history.erase(amax_history.begin());
      seen_at.erase(seen_at.begin());
    }
    ++now;
  }
};

}  // namespace halfscope::policy
