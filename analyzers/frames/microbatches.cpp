// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/microbatches.hpp"

#include <fmt/format.h>

#include <cmath>

namespace halfscope::analyzers::frames {

bool is_microbatch(std::string_view tag, log::Role role) {
  return tag.starts_with(fmt::format("max_abs/{}/microbatch-", log::name_of(role)));
}

std::optional<double> largest_part(const log::StepScalars& scalars) {
  std::optional<double> largest;
  for (const auto& [tag, value] : scalars.more) {
    if (!is_microbatch(tag, log::Role::weight_grad)) continue;
    const double x = std::abs(value);
    if (!largest || std::isnan(x) || x > *largest) largest = x;
  }
  return largest;
}

}  // namespace halfscope::analyzers::frames
