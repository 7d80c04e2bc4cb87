// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_headers.hpp"

namespace halfscope::analyzers::readers::console {

void HeaderSteps::to_steps(ConsoleLine& line) {
  constexpr std::uint64_t kNear = 32;
  ++lines_since_;
  if (line.header) {
    header_ = line.header;
    lines_since_ = 0;
    if (header_->is_epoch) epoch_ = header_->number;
  } else if (line.loose.any() && header_ && lines_since_ <= kNear) {
    line.periodic = Periodic{.steps = header_->number,
                             .alone = false,
                             .form = header_->is_epoch ? kEpochForm : kHeaderForm};
    line.scalars = line.loose;
  } else if (line.periodic && line.periodic->may_restart && !line.periodic->in_epoch) {
    count_epoch(*line.periodic);
  }
}

void HeaderSteps::count_epoch(Periodic& periodic) {
  if (!epoch_ && periodic.total && periodic.form == form_) {
    const std::int64_t nearly_all = *periodic.total - *periodic.total / 10;
    if (periodic.steps < step_ && step_ >= nearly_all) ++epochs_;
    periodic.in_epoch = InEpoch{epochs_, 0, periodic.total};
  }
  if (epoch_) periodic.in_epoch = InEpoch{epoch_, 0, periodic.total};
  form_ = periodic.form;
  step_ = periodic.steps;
}

}  // namespace halfscope::analyzers::readers::console
