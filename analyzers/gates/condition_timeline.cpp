// SPDX-License-Identifier: Apache-2.0
#include "analyzers/gates/condition_timeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::gates {

using scale_history::RunState;

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

namespace {

/// Returns the step as a number; NaN if there is no such step.
Measured step_of(std::optional<std::int64_t> since) {
  return since ? static_cast<double>(*since) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

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

}  // namespace halfscope::analyzers::gates
