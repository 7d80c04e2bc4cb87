// SPDX-License-Identifier: Apache-2.0
// The values of conditions on a log's state, on FP8 or FP4 losses that the framework measured, and
// on the tensors of two compared runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/gates/condition.hpp"
#include "analyzers/weights/claims.hpp"
#include "analyzers/weights/moved.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::gates {

using scale_history::RunState;

namespace {

/// Returns the step as a number; NaN if there is no such step.
Measured step_of(std::optional<std::int64_t> since) {
  return since ? static_cast<double>(*since) : std::numeric_limits<double>::quiet_NaN();
}

std::optional<Measured> of_elements(const Condition& c, const compare::ElementChanges& e) {
  if (c.field == "became_zero") return count_of(c, e.became_zero, e.elements);
  if (c.field == "became_subnormal") return count_of(c, e.became_subnormal, e.elements);
  if (c.field == "became_infinite") return count_of(c, e.became_infinite, e.elements);
  if (c.field == "became_nan") return count_of(c, e.became_nan, e.elements);
  return finite_number(c.field == "largest_ulps" ? e.largest_ulps : e.largest_relative_error);
}

}  // namespace

std::optional<RunState> state_named(std::string_view name) {
  for (const RunState state : scale_history::kRunStates) {
    if (scale_history::name_of(state) == name) return state;
  }
  return std::nullopt;
}

void require_state(const Condition& c) {
  const bool equality = c.relation == Relation::equal || c.relation == Relation::not_equal;
  if (equality && state_named(c.limit)) return;
  std::vector<std::string_view> names;
  for (const RunState state : scale_history::kRunStates) {
    names.push_back(scale_history::name_of(state));
  }
  throw std::invalid_argument(fmt::format("'{}': 'state' is compared by == or != with one of {}",
                                          log::printable(c.text), fmt::join(names, ", ")));
}

std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts& facts) {
  if (condition.field == "state") return facts.state;
  if (condition.field == "nonfinite_since") return step_of(facts.nonfinite_since());
  if (condition.field == "collapsed_since") return step_of(facts.collapsed_since());
  if (condition.field == "last_scale") {
    return facts.scale_last ? std::optional<Measured>(*facts.scale_last) : std::nullopt;
  }
  if (!facts.skips_told) return std::nullopt;
  if (condition.field == "skipped") return facts.skipped_bounds();
  if (!facts.attempts) return std::nullopt;
  return underflow::Share{facts.skipped_bounds(), Interval(*facts.attempts)};
}

std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts* facts,
                                std::optional<std::int64_t> broken_since) {
  const scale_history::TimelineFacts untold;
  const scale_history::TimelineFacts& told = facts == nullptr ? untold : *facts;
  if (!broken_since || !is_of_end(condition)) return measure(condition, told);
  if (condition.field == "state") return RunState::broken;
  return step_of(std::min(*broken_since, told.nonfinite_since().value_or(*broken_since)));
}

std::optional<Measured> measure(const Condition& condition,
                                const formats::QuantisedTensor& tensor) {
  if (!is_of_quantised(condition) || !tensor.underflow) return std::nullopt;
  const formats::AtStep& largest = tensor.underflow->largest;
  return ShareRange{largest.low, largest.high};
}

/// Tensors of a recipe that the run did not use are not judged, so no condition applies to them.
bool applies(const Condition& condition, const formats::QuantisedTensor& tensor) {
  return tensor.judged && selects(condition, tensor.role, tensor.name());
}

std::optional<Measured> measure(const Condition& condition, const weights::TensorMovement& tensor) {
  return count_of(condition, tensor.frozen(), tensor.elements);
}

std::optional<Measured> measure(const Condition&, const weights::Claim& claim) {
  std::uint64_t faults = 0;
  for (const weights::NarrowTensors& narrow : claim.narrow) {
    if (narrow.is_fault) faults += narrow.names.size();
  }
  return Interval(faults);
}

bool applies(const Condition& condition, const weights::TensorMovement& tensor) {
  return selects(condition, tensor.role, tensor.name);
}

bool applies(const Condition& condition, const weights::Claim& claim) {
  return selects(condition, claim.role, claim.kind);
}

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
