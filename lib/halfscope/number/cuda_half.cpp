// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/cuda_half.hpp"

#include <algorithm>
#include <cmath>

namespace halfscope::cuda_half {
namespace {

std::uint16_t rounded(double x) {
  return detail::encoding(from_double(kBinary16, x, detail::modes()));
}

/// Clamps the argument to [-64, 64]. Beyond that all three exponentials overflow binary16 or round
/// to zero as they do at 64, and the C library never reports an error.
template <typename Function>
std::uint16_t exponential(std::uint16_t a, Function function) {
  if (is_nan(kBinary16, a)) return kNan;
  return rounded(function(std::clamp(to_double(kBinary16, a), -64.0, 64.0)));
}

template <typename Function>
std::uint16_t logarithm(std::uint16_t a, Function function) {
  if (is_nan(kBinary16, a)) return kNan;
  if ((a & 0x7FFF) == 0) return 0xFC00;
  if ((a & 0x8000) != 0) return kNan;
  return rounded(function(to_double(kBinary16, a)));
}

}  // namespace

std::uint16_t hexp(std::uint16_t a) {
  return exponential(a, [](double x) { return std::exp(x); });
}
std::uint16_t hexp2(std::uint16_t a) {
  return exponential(a, [](double x) { return std::exp2(x); });
}
std::uint16_t hexp10(std::uint16_t a) {
  return exponential(a, [](double x) { return std::pow(10.0, x); });
}
std::uint16_t hlog(std::uint16_t a) {
  return logarithm(a, [](double x) { return std::log(x); });
}
std::uint16_t hlog2(std::uint16_t a) {
  return logarithm(a, [](double x) { return std::log2(x); });
}
std::uint16_t hlog10(std::uint16_t a) {
  return logarithm(a, [](double x) { return std::log10(x); });
}

}  // namespace halfscope::cuda_half
