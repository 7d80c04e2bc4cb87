// SPDX-License-Identifier: Apache-2.0
// Conditions on the tensors of two compared runs.
#include <cmath>

#include "analyzers/compare/compare.hpp"
#include "analyzers/gates/condition.hpp"

namespace halfscope::analyzers::gates {
namespace {

/// Returns a count of elements, or the share of `of` if the condition has a percentage.
std::optional<Measured> count_of(const Condition& c, const Interval& count, std::uint64_t of) {
  if (!c.percent) return count;
  return of == 0 ? std::nullopt : std::optional<Measured>(underflow::Share{count, of});
}

std::optional<Measured> of_elements(const Condition& c, const compare::ElementChanges& e) {
  if (c.field == "became_zero") return count_of(c, e.became_zero, e.elements);
  if (c.field == "became_subnormal") return count_of(c, e.became_subnormal, e.elements);
  if (c.field == "became_infinite") return count_of(c, e.became_infinite, e.elements);
  if (c.field == "became_nan") return count_of(c, e.became_nan, e.elements);
  return finite_number(c.field == "largest_ulps" ? e.largest_ulps : e.largest_relative_error);
}

}  // namespace

std::optional<Measured> measure(const Condition& c, const compare::ComparedTensor& t) {
  const underflow::Counts& b = t.counts.b;
  if (c.field == "nan") return count_of(c, b.nan, b.total);
  if (c.field == "overflow") return count_of(c, b.classes.overflow, b.finite_nonzero.low);
  if (c.field == "updates_lost") {
    return t.updates ? count_of(c, t.updates->b.half.lost(), t.updates->b.updates()) : std::nullopt;
  }
  if (c.field == "zero_difference") return static_cast<double>(t.zero_difference);
  if (c.field == "max_abs_shift") return finite_number(t.max_abs_shift);
  if (c.field == "largest_share_difference") return finite_number(t.largest_share_difference);
  if (c.field == "median_shift") {
    return t.median_shift ? std::optional<Measured>(static_cast<double>(*t.median_shift))
                          : std::nullopt;
  }
  if (c.field == "new_zeros") {
    return t.new_zeros ? count_of(c, *t.new_zeros, b.total) : std::nullopt;
  }
  if (c.field == "sums_above") {
    return t.sums_above && t.elements ? count_of(c, *t.sums_above, t.elements->elements)
                                      : std::nullopt;
  }
  return t.elements ? of_elements(c, *t.elements) : std::nullopt;
}

bool applies(const Condition& c, const compare::ComparedTensor& t) {
  return c.only.empty() || selects(c, t.role, t.name);
}

}  // namespace halfscope::analyzers::gates
