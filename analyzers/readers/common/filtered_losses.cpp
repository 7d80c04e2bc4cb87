// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/filtered_losses.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace halfscope::analyzers::readers::common {

void FilteredLosses::take(std::int64_t step, std::optional<double>& loss,
                          std::optional<double> gradient_norm) {
  if (loss != 0 || !gradient_norm || std::isfinite(*gradient_norm)) return;
  if (count_++ == 0) first_ = step;
  loss = std::numeric_limits<double>::quiet_NaN();
}

std::string FilteredLosses::text(const char* at) const {
  if (count_ == 0) return "";
  return fmt::format(
      "the loss is 0 in {} {} whose gradient norm is NaN or infinite, first at {} {}: the Trainer "
      "logs 0 where the loss of every step is NaN or infinite (logging_nan_inf_filter)",
      count_, count_ == 1 ? "entry" : "entries", at, first_);
}

}  // namespace halfscope::analyzers::readers::common
