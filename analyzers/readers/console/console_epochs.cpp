// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_epochs.hpp"

#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {

/// An epoch that comes again is of a run that was restarted.
std::int64_t EpochSteps::begin_of(std::int64_t epoch) {
  begins_.erase(begins_.upper_bound(epoch), begins_.end());
  if (const auto known = begins_.find(epoch); known != begins_.end()) return known->second;
  if (begins_.size() >= kMostEpochs) return begins_.rbegin()->second;
  const std::int64_t begin = begins_.empty() ? 0 : last_;
  begins_.emplace(epoch, begin);
  return begin;
}

void EpochSteps::to_steps(ConsoleLine& line) {
  if (!line.periodic || !line.periodic->in_epoch) return;
  const InEpoch& in_epoch = *line.periodic->in_epoch;
  if (rank_.value_or(in_epoch.rank) != in_epoch.rank) {
    line = {};
    return;
  }
  rank_ = in_epoch.rank;
  if (in_epoch.epoch) line.periodic->steps += begin_of(*in_epoch.epoch);
  if (line.periodic->steps > kMostSteps) {
    line.periodic.reset();
    return;
  }
  last_ = line.periodic->steps;
}

}  // namespace halfscope::analyzers::readers::console
