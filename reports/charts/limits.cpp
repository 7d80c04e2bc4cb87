// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/limits.hpp"

#include <fmt/format.h>

#include <cmath>

#include "halfscope/table/boundary.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::charts {

namespace {

/// Returns a power of two divided by the scale; the text is a single power if the scale is one.
Limit power(int exponent, double scale) {
  if (const std::optional<int> log2 = exact_log2(scale)) {
    const int shifted = exponent - *log2;
    return {static_cast<double>(shifted), fmt::format("2^{}", shifted)};
  }
  return {exponent - std::log2(scale), fmt::format("2^{}/{}", exponent, scale)};
}

std::string divided(double value, double scale) {
  const std::string digits =
      value < 1e7 ? fmt::format("{:.7g}", value) : fmt::format("{:.3g}", value);
  if (scale == 1) return digits;
  const std::optional<int> log2 = exact_log2(scale);
  if (!log2) return fmt::format("{}/{}", digits, scale);
  return fmt::format("{}{}2^{}", digits, *log2 > 0 ? "/" : "*", std::abs(*log2));
}

}  // namespace

Limits limits_of(const analyzers::underflow::Target& target, double scale) {
  const Format format = target.format;
  const bool flushes = target.subnormals != Subnormals::keep;
  const int zero = flushes ? format.emin() : format.min_quantum_exponent() - 1;
  const double overflow = to_double(target.boundaries(1, 1).overflow);
  return {.zero = power(zero, scale),
          .subnormal = power(format.emin(), scale),
          .overflow = {std::log2(overflow) - std::log2(scale), divided(overflow, scale)}};
}

}  // namespace halfscope::reports::charts
