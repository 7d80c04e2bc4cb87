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
  } else if (line.periodic && line.periodic->may_restart && !line.periodic->in_epoch && epoch_) {
    line.periodic->in_epoch = InEpoch{epoch_, 0, line.periodic->total};
  }
}

}  // namespace halfscope::analyzers::readers::console
