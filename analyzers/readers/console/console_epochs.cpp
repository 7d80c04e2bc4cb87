// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_epochs.hpp"

#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {

/// An epoch that comes again is of a run that was restarted.
std::int64_t EpochSteps::Counter::begin_of(const InEpoch& in_epoch, std::int64_t now) {
  begins.erase(begins.upper_bound(*in_epoch.epoch), begins.end());
  if (const auto known = begins.find(*in_epoch.epoch); known != begins.end()) return known->second;
  const std::int64_t before = begins.empty() ? 0 : begins.rbegin()->second;
  const bool goes_on = begins.empty() || now > printed;
  const std::int64_t counted = batches.value_or(printed + (now == 0 ? 1 : 0));
  const std::int64_t begin = goes_on ? before : before + counted;
  if (begins.size() < kMostEpochs) begins.emplace(*in_epoch.epoch, begin);
  return begin;
}

void EpochSteps::to_steps(ConsoleLine& line) {
  if (!line.periodic || !line.periodic->in_epoch) return;
  const InEpoch in_epoch = *line.periodic->in_epoch;
  line.periodic->in_epoch.reset();
  if (rank_.value_or(in_epoch.rank) != in_epoch.rank) {
    line = {};
    return;
  }
  rank_ = in_epoch.rank;
  const std::size_t form = counters_.size() < kMostForms ? line.periodic->form : 0;
  if (!in_epoch.epoch) return;
  Counter& counter = counters_[form];
  const std::int64_t begin = counter.begin_of(in_epoch, line.periodic->steps);
  counter.printed = line.periodic->steps;
  counter.batches = in_epoch.batches;
  line.periodic->steps += begin;
  if (begin > 0 && !in_epoch.batches) line.periodic->in_epoch = in_epoch;
  if (line.periodic->steps > kMostSteps) line.periodic.reset();
}

}  // namespace halfscope::analyzers::readers::console
