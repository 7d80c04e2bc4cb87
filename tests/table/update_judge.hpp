// SPDX-License-Identifier: Apache-2.0
// The judge of updates: every number a whole multiple of one small unit, in integers wide enough to
// hold all of them exactly. Of the library it knows the tables it fills and nothing else; formats
// are the oracle's.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/update/update_table.hpp"
#include "oracle.hpp"

namespace judge {

using halfscope::UpdateCell;
using halfscope::UpdateCounts;
using halfscope::UpdateOutcomes;
using halfscope::UpdateTable;

/// Multiples of 2^Unit in Integer.
template <typename Integer, int Unit>
struct Arithmetic {
  static int log2(const Integer& x) {  // floor(log2 |x|), x not 0
    return static_cast<int>(msb(static_cast<Integer>(abs(x)))) + Unit;
  }
  static Integer of(double x) {  // exactly, or the judge is wrong
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    const int shift = exponent - 53 - Unit;
    auto n = static_cast<Integer>(static_cast<std::int64_t>(std::ldexp(fraction, 53)));
    if (shift >= 0) return n << shift;
    const Integer step = Integer(1) << -shift;
    if (n % step != 0) throw std::logic_error("judge: unit too coarse");
    return n / step;
  }
  /// Ties to even; none where it is infinite.
  static std::optional<Integer> nearest(const oracle::Layout& f, const Integer& x) {
    if (x == 0) return x;
    const Integer magnitude = abs(x);
    const int place = std::max(log2(x), f.min_exponent()) - f.fraction_bits - Unit;
    if (place <= 0) return x;
    const Integer step = Integer(1) << place;
    Integer down = magnitude / step;
    const Integer rest = 2 * (magnitude - down * step);
    if (rest > step || (rest == step && down % 2 != 0)) down += 1;
    const Integer rounded = down * step;
    const int above = (1 << f.exponent_bits) - 1 - f.bias;  // exponent of the first infinity
    if (rounded != 0 && log2(rounded) >= above) return std::nullopt;
    return x < 0 ? Integer(-rounded) : rounded;
  }
  /// floor(log2(|a| / |b|)).
  static int log2_of_ratio(const Integer& a, const Integer& b) {
    const int guess = log2(a) - log2(b);
    const Integer x = abs(a), y = abs(b);
    const bool below = guess >= 0 ? x < (y << guess) : (x << -guess) < y;
    return below ? guess - 1 : guess;
  }
};

template <typename Integer, int Unit>
class Judge {
  using Exact = Arithmetic<Integer, Unit>;

 public:
  explicit Judge(const oracle::Layout& format) : format_(format) {}

  /// weight and update in binary64 or narrower; lr: SGD's, then `update` is the unscaled gradient.
  void add(UpdateTable& table, double weight, double update,
           std::optional<float> lr = std::nullopt) const {
    ++table.counts.pairs;
    const std::optional<Integer> w = finite(weight, format_);
    if (!w || !std::isfinite(update)) {
      ++table.counts.nonfinite;
      return;
    }
    Integer u = Exact::of(update);
    std::optional<Integer> u32 = Exact::nearest(binary32_, u);
    if (lr) {
      // Exact: the factors' units multiply, and the product is a multiple of Unit again.
      u = -times(update, *lr);
      u32 = u32 ? Exact::nearest(binary32_, -times(to_double(*u32), *lr)) : u32;
    }
    if (u == 0) {
      ++table.counts.zero;
      return;
    }
    count(table, *w, u, u32);
  }

 private:
  static Integer times(double a, double b) {  // 48 bits at most: a binary64 product is exact
    return Exact::of(a * b);
  }
  static double to_double(const Integer& x) { return std::ldexp(static_cast<double>(x), Unit); }
  static std::optional<Integer> finite(double x, const oracle::Layout& f) {
    return std::isfinite(x) ? Exact::nearest(f, Exact::of(x)) : std::nullopt;
  }

  /// Returns whether it is lost.
  bool settle(UpdateOutcomes& outcomes, bool underflow, const Integer& w,
              const std::optional<Integer>& sum, const Integer& u) const {
    if (underflow) {
      ++outcomes.underflow;
    } else if (!sum) {
      ++outcomes.overflow;
    } else if (*sum == w) {
      ++outcomes.swamped;
      return true;
    } else if (*sum - w == u) {
      ++outcomes.exact;
    } else {
      ++outcomes.applied;
    }
    return underflow;
  }

  void count(UpdateTable& table, const Integer& w, const Integer& u,
             const std::optional<Integer>& u32) const {
    const std::optional<Integer> u16 = Exact::nearest(format_, u);
    const auto plus = [&](const std::optional<Integer>& x) -> std::optional<Integer> {
      return x ? std::optional<Integer>(w + *x) : std::nullopt;
    };
    const auto round = [](const oracle::Layout& f, const std::optional<Integer>& x) {
      return x ? Exact::nearest(f, *x) : std::nullopt;
    };
    const std::optional<Integer> half = round(format_, plus(u16));
    const std::optional<Integer> fused = round(format_, round(binary32_, plus(u32)));
    const bool lost = settle(table.counts.half, u16 && *u16 == 0, w, half, u);
    settle(table.counts.fused, u32 && *u32 == 0, w, fused, u);
    if (abs(w) > abs(u) << (format_.fraction_bits + 1)) ++table.counts.rule_2048;
    const auto tally = [&](UpdateCell& cell) {
      ++cell.count;
      cell.lost += lost ? 1 : 0;
    };
    tally(table.cells[{w == 0 ? UpdateTable::kZeroWeight : Exact::log2(w), Exact::log2(u)}]);
    if (w != 0) tally(table.ratios[Exact::log2_of_ratio(u, w)]);
    if (lost || !half || *half - w == u) return;
    ++table.errors[Exact::log2_of_ratio(*half - w - u, u)];
  }

  const oracle::Layout& format_;
  const oracle::Layout& binary32_ = oracle::layout("binary32");
};

// Fast, for numbers in (2^-40, 2^17) with 24 bits; and for all binary32 and most binary64 numbers.
using Near = Judge<boost::multiprecision::int128_t, -64>;
using Far = Judge<boost::multiprecision::number<boost::multiprecision::cpp_int_backend<
                      2048, 2048, boost::multiprecision::signed_magnitude,
                      boost::multiprecision::unchecked, void>>,
                  -700>;

}  // namespace judge
