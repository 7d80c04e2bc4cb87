// SPDX-License-Identifier: Apache-2.0
// Synthetic runs whose tails are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>

#include "analyzers/recommend/skip_risk.hpp"
#include "halfscope/number/random.hpp"

namespace tails {

using halfscope::random_word;
using halfscope::analyzers::recommend::StepMaximum;

/// Uniform numbers in (0, 1), the same everywhere.
class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : seed_(seed) {}
  double operator()() { return (random_word(seed_, next_++) + 0.5) * 0x1p-32; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log((*this)()));
    return radius * std::cos(2 * std::numbers::pi * (*this)());
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

inline double normal_above(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }
inline double exponential_above(double x) { return x <= 0 ? 1 : std::exp(-x); }
inline double uniform_above(double x) { return std::clamp(1 - x, 0.0, 1.0); }
/// Student's t with three degrees of freedom, in closed form.
inline double student_above(double x) {
  const double r = std::numbers::sqrt3;
  return 0.5 - (std::atan(x / r) + r * x / (3 + x * x)) / std::numbers::pi;
}
inline double student(Uniform& u) {
  const double z = u.normal();
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(u.normal(), 2);
  return z / std::sqrt(squares / 3);
}

/// Normal, and with probability p so many binades above: rare steps of another kind.
template <int kPerThousand, int kAbove>
double mixture(Uniform& u) {
  const double x = u.normal();
  return u() < kPerThousand / 1000.0 ? x + kAbove : x;
}
template <int kPerThousand, int kAbove>
double mixture_above(double x) {
  constexpr double p = kPerThousand / 1000.0;
  return (1 - p) * normal_above(x) + p * normal_above(x - kAbove);
}
inline double gumbel(Uniform& u) { return -std::log(-std::log(u())); }
inline double gumbel_above(double x) { return -std::expm1(-std::exp(-x)); }

/// A way that log2 of a step's largest magnitude may vary.
struct Family {
  const char* name;
  std::function<double(Uniform&)> draw;
  double (*above)(double);
  double slope = 0;        ///< a step
  double correlation = 0;  ///< of neighbours: a first-order autoregression, normal
};

inline std::vector<StepMaximum> run_of(const Family& family, std::int64_t steps,
                                       std::uint64_t seed) {
  Uniform uniform(seed);
  std::vector<StepMaximum> run;
  double last = uniform.normal();
  for (std::int64_t step = 0; step < steps; ++step) {
    double x = family.draw(uniform);
    const double r = family.correlation;
    if (r != 0) last = x = r * last + std::sqrt(1 - r * r) * x;
    run.push_back({step, x + family.slope * static_cast<double>(step)});
  }
  return run;
}

/// x with above(x) = p.
inline double reached_with(double (*above)(double), double p) {
  double low = -100, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) > p ? low : high) = middle;
  }
  return high;
}

inline constexpr auto kNormal = [](Uniform& u) { return u.normal(); };
inline constexpr auto kExponential = [](Uniform& u) { return -std::log(u()); };
inline constexpr auto kFlat = [](Uniform& u) { return u(); };

/// Limits that a step like the last of a run reaches with these rates.
inline std::vector<double> limits_of(const Family& family, std::int64_t steps,
                                     const std::vector<double>& rates) {
  std::vector<double> limits;
  for (const double rate : rates) {
    limits.push_back(reached_with(family.above, rate) +
                     family.slope * static_cast<double>(steps - 1));
  }
  return limits;
}

}  // namespace tails
