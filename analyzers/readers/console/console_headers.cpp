// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_headers.hpp"

namespace halfscope::analyzers::readers::console {

void HeaderSteps::to_steps(ConsoleLine& line) {
  constexpr std::size_t kMostForms = 64;
  if (line.header) {
    evaluating_ = line.header->evaluation;
    evaluated_.reset();
    if (evaluating_) return;
    const bool is_epoch = line.header->is_epoch;
    above_ = Periodic{
        .steps = line.header->number, .alone = false, .form = is_epoch ? kEpochForm : kHeaderForm};
    if (is_epoch) epoch_ = line.header->number;
  } else if ((line.loose.loss || line.loose.gradient_norm) && above_) {
    line.periodic = above_;
    line.scalars = line.loose;
  } else if (line.periodic && line.periodic->may_restart && !line.periodic->in_epoch) {
    Periodic& periodic = *line.periodic;
    const bool room = counters_.size() < kMostForms || counters_.contains(periodic.form);
    const Counter anew{.first = periodic.steps, .last = periodic.steps};
    Counter& counter = counters_.try_emplace(room ? periodic.form : 0, anew).first->second;
    if (is_of_evaluation(periodic.steps, counter)) {
      const auto loss = line.scalars.loss;
      line.scalars = {};
      line.scalars.evaluation_loss = loss;
      line.periodic.reset();
    } else {
      periodic.in_epoch = InEpoch{epoch_of(periodic, counter), 0, periodic.total};
    }
  }
  if (line.periodic && !line.scalars.loss && !line.loose.any()) {  // "step 1 lr 0.1", "loss: 2.0"
    above_ = line.periodic;
    above_->skipped.reset();
  }
}

bool HeaderSteps::is_of_evaluation(std::int64_t step, const Counter& counter) {
  if (!evaluating_) return false;
  evaluating_ = evaluated_ ? step > *evaluated_ : step < counter.last;
  if (evaluating_) evaluated_ = step;
  return evaluating_;
}

/// Returns the epoch of a line: that of the last header, else how often steps fell back.
std::int64_t HeaderSteps::epoch_of(const Periodic& periodic, Counter& counter) const {
  if (periodic.steps < counter.last) {
    const bool whole = periodic.total && counter.last >= *periodic.total - *periodic.total / 10;
    if (whole || periodic.steps <= counter.first) ++counter.epochs;
  }
  counter.last = periodic.steps;
  return epoch_.value_or(counter.epochs);
}

}  // namespace halfscope::analyzers::readers::console
