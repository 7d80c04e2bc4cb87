// SPDX-License-Identifier: Apache-2.0
// The judge of reductions: every addition by the scalar emulator, exact sums as rationals, orders
// written out as the collectives move data.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/reduction/order.hpp"
#include "oracle.hpp"

namespace judge {

using halfscope::Format;
using halfscope::reduction::Order;
using oracle::Rational;

/// A sum's value and what became of its additions.
struct Sum {
  std::uint64_t bits = 0;
  std::uint64_t additions = 0, lost = 0, flushed = 0;
  bool nonfinite = false;
  Rational exact = 0;
};

class Adder {
 public:
  Adder(Format f, std::string_view name) : f_(f), layout_(oracle::layout(name)) {}

  std::uint64_t take(float x, Sum& sum) const {
    const std::uint64_t bits = halfscope::convert(f_, halfscope::kBinary32, word(x)).bits;
    if (!finite(halfscope::kBinary32, word(x))) {
      sum.nonfinite = true;
      return bits;
    }
    if (x != 0 && (bits & f_.magnitude_mask()) == 0) ++sum.flushed;
    if (finite(f_, bits)) sum.exact += value(bits);
    return bits;
  }
  std::uint64_t add(std::uint64_t a, std::uint64_t b, Sum& sum) const {
    const std::uint64_t out = halfscope::add(f_, a, b).bits;
    ++sum.additions;
    const bool both = finite(f_, a) && finite(f_, b);
    const bool zero = (a & f_.magnitude_mask()) == 0 || (b & f_.magnitude_mask()) == 0;
    if (both && !zero && (out == a || out == b)) ++sum.lost;
    return out;
  }
  bool finite(Format f, std::uint64_t bits) const {
    return (bits & f.magnitude_mask()) <= f.largest_finite();
  }
  bool finite(std::uint64_t bits) const { return finite(f_, bits); }
  Rational value(std::uint64_t bits) const {
    const Rational x = oracle::value(layout_, bits & f_.magnitude_mask());
    return (bits & f_.sign_mask()) != 0 ? Rational(-x) : x;
  }
  /// One unit in the last place at a magnitude.
  Rational ulp(const Rational& x) const {
    Rational binade = oracle::power_of_two(f_.emin());
    while (binade * 2 <= x) binade *= 2;
    return binade * oracle::power_of_two(1 - f_.precision);
  }

 private:
  static std::uint64_t word(float x) { return std::bit_cast<std::uint32_t>(x); }

  Format f_;
  oracle::Layout layout_;
};

using Words = std::vector<std::uint64_t>;

inline std::uint64_t chain(const Adder& adder, const Words& x, std::size_t start, Sum& sum) {
  std::uint64_t total = x[start];
  for (std::size_t step = 1; step < x.size(); ++step) {
    total = adder.add(total, x[(start + step) % x.size()], sum);
  }
  return total;
}

/// Even ranks below twice the surplus send to their neighbours; then the upper half sends to the
/// lower half until one is left.
inline std::uint64_t halving(const Adder& adder, Words x, Sum& sum) {
  std::size_t power = 1;
  while (2 * power <= x.size()) power *= 2;
  const std::size_t surplus = x.size() - power;
  for (std::size_t r = 0; r < surplus; ++r) x[r] = adder.add(x[2 * r], x[2 * r + 1], sum);
  for (std::size_t r = surplus; r < power; ++r) x[r] = x[r + surplus];
  for (std::size_t half = power / 2; half > 0; half /= 2) {
    for (std::size_t r = 0; r < half; ++r) x[r] = adder.add(x[r], x[r + half], sum);
  }
  return x[0];
}

inline std::uint64_t halves(const Adder& adder, const Words& x, Sum& sum) {
  if (x.size() == 1) return x[0];
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  const std::uint64_t left = halves(adder, Words(x.begin(), middle), sum);
  return adder.add(left, halves(adder, Words(middle, x.end()), sum), sum);
}

/// ring_start: the rank that first sends the element's chunk.
inline Sum sum(const Adder& adder, const std::vector<float>& addends, Order order,
               std::size_t ring_start) {
  Sum out;
  Words x;
  for (const float addend : addends) x.push_back(adder.take(addend, out));
  switch (order) {
    case Order::sequential: out.bits = chain(adder, x, 0, out); break;
    case Order::ring: out.bits = chain(adder, x, ring_start, out); break;
    case Order::tree: out.bits = halving(adder, x, out); break;
    case Order::pairwise: out.bits = halves(adder, x, out); break;
  }
  return out;
}

}  // namespace judge
