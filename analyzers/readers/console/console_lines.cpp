// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_lines.hpp"

#include <cmath>

#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// 0 is what is left of a loss scale after it collapsed.
bool can_be_scale(double scale) { return std::isfinite(scale) && scale >= 0; }

/// Takes away what can be no loss scale, and keeps it to be told.
void check_scale(std::optional<double>& scale, std::optional<double>& odd) {
  if (!scale || (can_be_scale(*scale) && *scale != 0)) return;
  if (!odd) odd = scale;
  if (!can_be_scale(*scale)) scale.reset();
}

}  // namespace

ConsoleLine console_line(std::string_view line) {
  ConsoleLine found;
  found.overflow = overflow_of(line);
  found.iteration = iteration_of(line);
  found.periodic = periodic_of(line);
  found.bar = bar_of(line);
  found.scalars = scalars_of(line, found.periodic.has_value(), found.bar.has_value());
  found.applied = applied_of(line);
  found.at_minimum = ends_at_minimum(line);
  if (found.overflow) check_scale(found.overflow->next, found.odd_scale);
  if (found.overflow) check_scale(found.overflow->attempted, found.odd_scale);
  if (found.applied) check_scale(found.applied->next, found.odd_scale);
  check_scale(found.scalars.loss_scale, found.odd_scale);
  return found;
}

}  // namespace halfscope::analyzers::readers::console
