// SPDX-License-Identifier: Apache-2.0
#include "analyzers/skip_limit.hpp"

#include <cmath>

#include "analyzers/overflow_cause.hpp"
#include "analyzers/timeline_facts.hpp"

namespace halfscope::analyzers {
namespace {

double overflow_limit() { return to_double(boundaries(kBinary16).overflow); }

/// As for infinities that are recorded: overflow_cause_gradients.cpp.
bool in_vain(const TimelineFacts& facts, std::optional<double> largest) {
  if (!largest || !(*largest > 0)) return false;
  const double room = std::log2(overflow_limit() / *largest / facts.least_skip->scale);
  const double lowered = std::log2(facts.most_skip->scale / facts.least_skip->scale);
  return room >= kOutOfReach && lowered >= kLowered;
}

Limit limit_of(const TimelineFacts& facts) {
  const SkipAt& skip = *facts.least_skip;
  Limit limit;
  limit.log = facts.log;
  limit.name = std::string(log::name_of(log::Role::weight_grad));
  limit.step = skip.last.value_or(skip.first);
  limit.max_abs = overflow_limit() / skip.scale;
  limit.censored = true;
  limit.from_scalars = true;
  limit.skipped_at = skip.scale;
  if (limit.step != skip.first) limit.first_step = skip.first;
  return limit;
}

}  // namespace

std::optional<Limit> skip_limit(const Analysis& analysis, std::optional<double> largest) {
  std::optional<Limit> limit;
  for (const TimelineFacts& facts : timeline_facts(analysis)) {
    if (!facts.least_skip || in_vain(facts, largest)) continue;
    const Limit found = limit_of(facts);
    if (!limit || found.max_abs > limit->max_abs) limit = found;
  }
  return limit;
}

}  // namespace halfscope::analyzers
