// SPDX-License-Identifier: Apache-2.0
// Drives a policy over a made-up run, by the rule of reference traces: a step overflows where its
// largest unscaled magnitude is NaN, or times the scale reaches 65520.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "halfscope/policy/policy.hpp"

namespace halfscope::policy {

inline bool overflows(double magnitude, double scale) {
  return !(magnitude * scale < 65520);  // NaN too, also that of 0 times infinity
}

struct Run {
  std::vector<double> scale;                     ///< at the first attempt of each step
  std::vector<int> skipped, overflow, attempts;  ///< overflow: some attempt's
  double final = 0;
  std::string error;  ///< ends the run
};

inline Run run(Policy policy, int steps, const std::function<double(int)>& magnitude) {
  Run run;
  for (int step = 0; step < steps && run.error.empty(); ++step) {
    run.scale.push_back(scale_of(policy));
    Decision decision;
    int attempts = 0;
    bool overflowed = false;
    do {
      const double max_abs = magnitude(step);
      const bool nonfinite = overflows(max_abs, scale_of(policy));
      decision = advance(policy, {nonfinite, max_abs});
      overflowed = overflowed || nonfinite;
      ++attempts;
    } while (decision.action == Action::retry && attempts < 1000);
    run.attempts.push_back(attempts);
    if (overflowed) run.overflow.push_back(step);
    if (decision.action == Action::skip) run.skipped.push_back(step);
    run.error = decision.error;
  }
  run.final = scale_of(policy);
  return run;
}

inline Run run(const char* text, int steps, const std::function<double(int)>& magnitude) {
  return run(make(text), steps, magnitude);
}

inline const auto always_nan = [](int) { return std::nan(""); };
inline const auto always_zero = [](int) { return 0.0; };

/// Exponents of scales; 9999 where one is no power of two.
inline std::vector<int> exponents(const std::vector<double>& scales) {
  std::vector<int> all;
  for (const double scale : scales) {
    int exponent = 0;
    all.push_back(std::frexp(scale, &exponent) == 0.5 ? exponent - 1 : 9999);
  }
  return all;
}

}  // namespace halfscope::policy
