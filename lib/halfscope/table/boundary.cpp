// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/boundary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

namespace halfscope {
namespace {

__extension__ using Wide = unsigned __int128;

int bit_width(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high)
                                    : std::bit_width(static_cast<std::uint64_t>(x)));
}

/// significand * 2^exponent; a class begins at this value, or (strict) just above it.
struct Limit {
  std::uint64_t significand;
  int exponent;
  bool strict;
};

/// A positive finite double as significand * 2^exponent with an odd significand.
struct Dyadic {
  std::uint64_t significand;
  int exponent;
};

Dyadic take_apart(double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    throw std::invalid_argument("loss scale: found " + std::to_string(scale) +
                                ", expected a positive finite number");
  }
  int exponent = 0;
  const double significand = std::frexp(scale, &exponent);  // in [1/2, 1), exact
  const auto integer = static_cast<std::uint64_t>(std::ldexp(significand, 53));
  const int zeros = std::countr_zero(integer);
  return {integer >> zeros, exponent - 53 + zeros};
}

/// Returns the first magnitude v with v * loss_scale / recorded_scale at (if strict: above) the
/// limit. v = limit * recorded / loss is a quotient of integers of at most 107 and 53 bits; it is
/// determined by its first 53 bits and whether any bit after them is set.
Magnitude first_magnitude(const Limit& limit, const Dyadic& loss, const Dyadic& recorded) {
  Wide numerator = Wide{limit.significand} * recorded.significand;
  const int shift = std::max(0, 108 - bit_width(numerator));
  numerator <<= shift;
  const bool power_of_two = loss.significand == 1;  // the usual case; a division is slow
  const Wide quotient =
      power_of_two ? numerator : numerator / loss.significand;  // at least 55 bits
  const int dropped = bit_width(quotient) - 53;
  // NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult): dropped is at least 2
  const bool exact = (power_of_two || numerator % loss.significand == 0) &&
                     (quotient & ((Wide{1} << dropped) - 1)) == 0;
  auto significand = static_cast<std::uint64_t>(quotient >> dropped);
  // NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult)
  int exponent = limit.exponent + recorded.exponent - loss.exponent - shift + dropped + 52;
  if (limit.strict || !exact) ++significand;
  if (significand == 2 * kFractionUnit) {
    significand = kFractionUnit;
    ++exponent;
  }
  return {exponent, significand - kFractionUnit};
}

// The three boundaries of round to nearest, ties to even; docs/numerics/counting.md derives them.

/// Half the smallest subnormal is a tie that rounds to zero, which is even.
Limit nonzero_limit(Format f) { return {1, f.min_quantum_exponent() - 1, true}; }

/// 2^emin minus half the smallest step is a tie that rounds to 2^emin, which is even.
Limit normal_limit(Format f) {
  return {(std::uint64_t{1} << f.precision) - 1, f.min_quantum_exponent() - 1, false};
}

/// Half a step above the largest finite number: a tie that overflows if that number is odd.
Limit overflow_limit(Format f) {
  const std::uint64_t significand =
      (f.largest_finite() & f.fraction_mask()) | (f.fraction_mask() + 1);
  const bool odd = (significand & 1) != 0;
  return {2 * significand + 1, f.emax - f.fraction_bits() - 1, !odd};
}

/// 2^emin minus half a unit in the last of p bits, a tie that rounds to 2^emin, which is even.
Limit rounds_to_normal_limit(Format f) {
  return {(std::uint64_t{2} << f.precision) - 1, f.min_quantum_exponent() - 2, false};
}

/// The least value that is not flushed.
Limit kept_limit(Format f, Subnormals rule) {
  switch (rule) {
    case Subnormals::keep: break;
    case Subnormals::flush: return rounds_to_normal_limit(f);
    case Subnormals::flush_before: return {1, f.emin(), false};
    case Subnormals::flush_result: return normal_limit(f);
  }
  return nonzero_limit(f);
}

void append_cut(std::vector<std::uint64_t>& cuts, const Magnitude& m) {
  if (m.fraction != 0) cuts.push_back(m.fraction);
}

void append_cuts(std::vector<std::uint64_t>& cuts, Format f, double loss_scale,
                 double recorded_scale) {
  const Boundaries b = boundaries(f, loss_scale, recorded_scale);
  for (const Magnitude& m : {b.nonzero, b.normal, b.overflow}) append_cut(cuts, m);
}

void sort_unique(std::vector<std::uint64_t>& cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

}  // namespace

std::optional<int> exact_log2(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5 ? std::optional(exponent - 1) : std::nullopt;
}

Magnitude magnitude_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto biased = static_cast<int>(bits >> 52);
  if (biased != 0) return {biased - 1023, bits & (kFractionUnit - 1)};
  int exponent = 0;  // a subnormal number has leading zeros
  const double half = std::frexp(x, &exponent);
  return {exponent - 1, static_cast<std::uint64_t>(std::ldexp(half, 53)) - kFractionUnit};
}

double to_double(const Magnitude& m) {
  return std::ldexp(static_cast<double>(m.fraction + kFractionUnit), m.exponent - 52);
}

std::string_view name_of(Subnormals rule) {
  return kSubnormals[static_cast<std::size_t>(rule)].name;
}

std::optional<Subnormals> find_subnormals(std::string_view name) {
  for (const NamedSubnormals& row : kSubnormals) {
    if (row.name == name) return row.rule;
  }
  return std::nullopt;
}

Modes with_subnormals(Modes modes, Subnormals rule) {
  modes.flush_to_zero = rule != Subnormals::keep;
  modes.flush = rule == Subnormals::flush_result ? Flush::subnormal : Flush::tiny;
  if (rule == Subnormals::flush_before) modes.tininess = Tininess::before_rounding;
  return modes;
}

Boundaries boundaries(Format target, double loss_scale, double recorded_scale,
                      Subnormals subnormals) {
  const Dyadic loss = take_apart(loss_scale);
  const Dyadic recorded = take_apart(recorded_scale);
  const auto first = [&](const Limit& limit) { return first_magnitude(limit, loss, recorded); };
  const Magnitude nonzero = first(kept_limit(target, subnormals));
  return {nonzero, std::max(nonzero, first(normal_limit(target))), first(overflow_limit(target))};
}

Boundaries before_scaling(const Boundaries& limits, int k) {
  Boundaries shifted = limits;
  for (Magnitude* m : {&shifted.nonzero, &shifted.normal, &shifted.overflow}) m->exponent -= k;
  return shifted;
}

Magnitude unscaled_binade(int exponent, double scale) {
  return first_magnitude({1, exponent, false}, {1, 0}, take_apart(scale));
}

const std::vector<std::uint64_t>& standard_cuts() {
  static const std::vector<std::uint64_t> cuts = [] {
    std::vector<std::uint64_t> all;
    for (const NamedFormat& row : kFormats) {
      const bool with_block_scale = row.format.width < 8;  // no tensor has these values
      const bool narrow = row.format.precision <= kBinary16.precision;
      if (narrow && !with_block_scale) append_cuts(all, row.format, 1.0, 1.0);
    }
    sort_unique(all);
    return all;
  }();
  return cuts;
}

std::vector<std::uint64_t> cuts_for(Format target, double loss_scale, double recorded_scale) {
  std::vector<std::uint64_t> cuts;
  append_cuts(cuts, target, loss_scale, recorded_scale);
  append_cuts(cuts, target, 1.0, recorded_scale);  // the scales 2^k, which are always evaluated
  append_cut(cuts, unscaled_binade(0, recorded_scale));
  sort_unique(cuts);
  return cuts;
}

}  // namespace halfscope
