// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/transcendental.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

namespace test_transcendental {

using namespace halfscope::sim;

using Floats = std::vector<float>;

struct Function {
  const char* name;
  std::function<void(const float*, float*, std::int64_t)> of_array;
  std::function<double(double)> exact;
  double least, most;  // where results are normal and finite
};

const std::vector<Function> kFunctions = {
    {"exp", backend::cpu::exponentials, [](double x) { return std::exp(x); }, -87, 88},
    {"tanh", backend::cpu::hyperbolic_tangents, [](double x) { return std::tanh(x); }, -20, 20},
    {"logistic", backend::cpu::logistic_functions, [](double x) { return 1 / (1 + std::exp(-x)); },
     -87, 90}};

Floats of(const Function& f, const Floats& x) {
  Floats y(x.size());
  f.of_array(x.data(), y.data(), std::ssize(x));
  return y;
}

/// Even over the range, and of every magnitude down to 1e-12.
Floats arguments(const Function& f) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> even(f.least, f.most), magnitude(-12, 1);
  Floats x;
  for (int i = 0; i < 100'000; ++i) {
    const double size = std::pow(10, magnitude(random));
    x.push_back(static_cast<float>(i % 3 == 0 ? even(random) : i % 3 == 1 ? size : -size));
  }
  return x;
}

TEST_CASE("exp, tanh and logistic of arrays are within a few units in the last place") {
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    const Floats x = arguments(f), y = of(f, x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = f.exact(x[i]);
      worst = std::max(worst, std::abs(double(y[i]) / exact - 1));
    }
    CHECK(worst < 5 * 0x1p-23);
  }
}

TEST_CASE("The bits of an element are its own, wherever it stands") {
  for (const Function& f : kFunctions) {
    CAPTURE(f.name);
    Floats x = arguments(f);
    x.resize(1000);
    const Floats together = of(f, x);
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float alone = of(f, {x[i]})[0];
      different += std::bit_cast<std::uint32_t>(alone) != std::bit_cast<std::uint32_t>(together[i]);
    }
    const Floats shifted = of(f, Floats(x.begin() + 3, x.end()));
    for (std::size_t i = 0; i < shifted.size(); ++i) different += shifted[i] != together[i + 3];
    CHECK(different == 0);
    f.of_array(x.data(), x.data(), std::ssize(x));
    CHECK(x == together);
  }
}

TEST_CASE("exp, tanh and logistic at the ends") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Floats x{-kInfinity, -1000, -95, 0, 1000, kInfinity, std::nanf("")};
  const Floats exp = of(kFunctions[0], x), tanh = of(kFunctions[1], x), s = of(kFunctions[2], x);
  CHECK((exp[0] == 0 && exp[1] == 0 && exp[3] == 1 && exp[4] == kInfinity && exp[5] == kInfinity));
  CHECK(exp[2] == std::exp(-95.0F));  // subnormal
  CHECK((tanh[0] == -1 && tanh[1] == -1 && tanh[3] == 0 && tanh[4] == 1 && tanh[5] == 1));
  CHECK((s[0] == 0 && s[1] == 0 && s[3] == 0.5F && s[4] == 1 && s[5] == 1));
  CHECK((std::isnan(exp[6]) && std::isnan(tanh[6]) && std::isnan(s[6])));
}

}  // namespace test_transcendental
