// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_headers.hpp"

namespace halfscope::analyzers::readers::console {

void HeaderSteps::to_steps(ConsoleLine& line) {
  if (line.header) {
    evaluating_ = line.header->evaluation;
    evaluated_.reset();
    if (evaluating_) return;
    above_ = Periodic{.steps = line.header->number,
                      .alone = false,
                      .form = line.header->is_epoch ? kEpochForm : kHeaderForm};
    if (line.header->is_epoch) epoch_ = line.header->number;
  } else if ((line.loose.loss || line.loose.gradient_norm) && above_) {
    line.periodic = above_;
    line.scalars = line.loose;
  } else if (line.periodic && line.periodic->may_restart && !line.periodic->in_epoch) {
    const bool room = counters_.size() < kMostForms || counters_.contains(line.periodic->form);
    const std::size_t form = room ? line.periodic->form : 0;
    const auto [known, is_new] =
        counters_.try_emplace(form, Counter{line.periodic->steps, line.periodic->steps});
    if (is_of_evaluation(*line.periodic, known->second)) {
      const auto loss = line.scalars.loss;
      line.scalars = {};
      line.scalars.evaluation_loss = loss;
      line.periodic.reset();
    } else {
      set_epoch(*line.periodic, known->second);
    }
  }
  if (line.periodic && !line.scalars.loss && !line.loose.any()) {  // "step 1 lr 0.1", "loss: 2.0"
    above_ = line.periodic;
    above_->skipped.reset();
  }
}

bool HeaderSteps::is_of_evaluation(const Periodic& periodic, const Counter& counter) {
  if (!evaluating_) return false;
  evaluating_ = evaluated_ ? periodic.steps > *evaluated_ : periodic.steps < counter.last;
  if (evaluating_) evaluated_ = periodic.steps;
  return evaluating_;
}

void HeaderSteps::set_epoch(Periodic& periodic, Counter& counter) const {
  if (periodic.steps < counter.last) {
    const bool whole = periodic.total && counter.last >= *periodic.total - *periodic.total / 10;
    if (whole || periodic.steps <= counter.first) ++counter.epochs;
  }
  counter.last = periodic.steps;
  periodic.in_epoch = InEpoch{epoch_.value_or(counter.epochs), 0, periodic.total};
}

}  // namespace halfscope::analyzers::readers::console
