// SPDX-License-Identifier: Apache-2.0
// Which step a line's scalars are of.
#include <algorithm>
#include <cmath>

#include "analyzers/readers/console/console_steps.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::console {

void ConsoleSteps::tell(std::int64_t step, LineScalars scalars) {
  if (of_trainer_) filtered_.take(step, scalars.loss, scalars.gradient_norm);
  if (scalars.loss) timeline_.loss(step, *scalars.loss);
  if (scalars.learning_rate) timeline_.learning_rate(step, *scalars.learning_rate);
  if (scalars.gradient_norm) timeline_.gradient_norm(step, *scalars.gradient_norm);
  if (scalars.nan_iterations) timeline_.nan_iterations(step, *scalars.nan_iterations);
  if (scalars.found_inf) timeline_.found_inf(step, *scalars.found_inf);
  if (scalars.bad_parts > 0 && !bad_part_) {
    bad_part_ = frames::BadLossPart{step, log::printable(scalars.bad_part), scalars.bad_parts,
                                    scalars.parts};
  }
}

/// Of a line that tells no steps itself: those of the progress bar, of a field in it, or none.
void ConsoleSteps::take_scalars(LineScalars scalars) {
  const bool none = survey_.source == StepSource::none && !scalars.step;
  if (none && survey_.overflows) return;  // entries are numbered by these
  if (survey_.source == StepSource::lines && !scalars.step) {
    // Lines that tell steps have their own scalars: it tells what broke alone.
    const auto broke = [](std::optional<double>& value) {
      if (value && std::isfinite(*value)) value.reset();
    };
    if (!of_trainer_ || scalars.loss != 0) broke(scalars.loss);
    scalars.learning_rate.reset();
    scalars.loss_scale.reset();
  }
  any_step_ |= scalars.step.has_value();
  const std::int64_t step = scalars.step ? *scalars.step
                            : none       ? entry_++
                                         : bar_done_.value_or(done_);
  tell(step, scalars);
  told_ = std::max(told_, std::optional(step));
  if (scalars.loss_scale) timeline_.loss_scale(step, *scalars.loss_scale);
}

/// Of the step whose line follows: its update was applied, at a scale that fell.
void ConsoleSteps::take(const AppliedOverflow& applied) {
  if (survey_.source == StepSource::lines) {
    applied_ = applied;
    return;
  }
  const std::int64_t step =
      survey_.source == StepSource::none ? entry_++ : bar_done_.value_or(done_);
  timeline_.found_inf(step, false);
  told_ = std::max(told_, std::optional(step));
  if (applied.next) timeline_.loss_scale(step + 1, *applied.next);
}

LineScalars ConsoleSteps::with_applied(LineScalars scalars) {
  if (!applied_) return scalars;
  if (!scalars.loss_scale) scalars.loss_scale = applied_->next;
  scalars.found_inf = false;
  applied_.reset();
  return scalars;
}

}  // namespace halfscope::analyzers::readers::console
