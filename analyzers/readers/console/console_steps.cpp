// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace halfscope::analyzers::readers::console {

using common::Contradiction;

namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

constexpr Contradiction kNoScale{"a loss scale is infinite, nan or negative",
                                 "it is skipped, the rest of the line is used"};
constexpr Contradiction kZeroScale{
    "the loss scale is printed as 0",
    "a printed 0 is a rounded number: the scale is too small for the digits that are printed"};
constexpr Contradiction kBackwards{
    "an overflow names an earlier iteration than the one before",
    "all are counted: the run was restarted, or several ranks write to one log"};
constexpr Contradiction kMoreThanSteps{"more skipped steps are reported than steps were done",
                                       "overflow lines are counted instead"};
constexpr Contradiction kFewerThanBefore{"the reported total of skipped steps decreases",
                                         "overflow lines are counted instead"};
constexpr Contradiction kUncounted{"there are more overflow lines than reported skipped steps",
                                   "overflow lines are counted instead"};
constexpr Contradiction kTwoCounters{"two lines of one step count skipped steps differently",
                                     "the first one is used"};
constexpr Contradiction kRises{"a skipped step raised the loss scale", "the new scale is skipped"};
constexpr Contradiction kTooMany{"there are more overflow lines than steps",
                                 "at most these steps count as skipped"};

std::uint64_t natural(std::int64_t count) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, count));
}

}  // namespace

void ConsoleSteps::begin(const Survey& survey, common::Contradictions& contradictions) {
  survey_ = survey;
  if (survey.overflows > 0) rank_ = survey.rank;
  contradictions_ = &contradictions;
}

void ConsoleSteps::take(const ConsoleLine& line, std::uint64_t number) {
  line_ = number;
  of_trainer_ = line.tool == frames::Tool::transformers;
  at_minimum_ |= line.at_minimum;
  hysteresis_ = std::max(hysteresis_, line.hysteresis);
  if (line.cut_overflow && !survey_.counts_skips) ++perhaps_;
  if (line.odd_scale) {
    const bool zero = *line.odd_scale == 0;
    contradictions_->add(zero ? kZeroScale : kNoScale, number,
                         zero ? "" : fmt::format("{}", *line.odd_scale));
  }
  const bool of_training = line.bar && !survey_.bar.empty() && bar_name(*line.bar) == survey_.bar;
  if (of_training) take_bar(*line.bar);
  if (line.iteration) take(*line.iteration);
  if (line.overflow) take(without_rise(*line.overflow));
  if (!line.overflow) messages_.line(line, [this](const auto& group) { end_messages(group); });
  if (!line.iteration && !line.overflow) named_.other();
  if (line.applied) take(*line.applied);
  if (line.periodic && survey_.counts(*line.periodic)) {
    take(*line.periodic, with_applied(line.scalars));
  } else if (line.scalars.any() && (!line.bar || of_training || line.scalars.step) &&
             !(line.periodic && line.periodic->form <= kHeaderForm)) {
    take_scalars(line.scalars);
  }
  if (line.scalars.evaluation_loss) {
    timeline_.evaluation_loss(bar_done_.value_or(std::max(done_, entry_ - 1)),
                              *line.scalars.evaluation_loss);
  }
}

void ConsoleSteps::take(const OverflowIteration& named) {
  any_step_ |= named.iteration.has_value();
  const auto before = named_.last();
  if (before && named.iteration && *named.iteration < *before) {
    contradictions_->add(kBackwards, line_, fmt::format("{} after {}", *named.iteration, *before));
  }
  named_.name(named);
}

Overflow ConsoleSteps::without_rise(Overflow overflow) {
  if (overflow.attempted && overflow.next && *overflow.next > *overflow.attempted) {
    contradictions_->add(kRises, line_,
                         fmt::format("{} to {}", *overflow.attempted, *overflow.next));
    overflow.next.reset();
  }
  return overflow;
}

void ConsoleSteps::take_bar(const Bar& bar) {
  bar_done_ = bar.done;
  if (survey_.steps != StepSource::bar || bar.done <= done_) return;
  take(Periodic{bar.done, false, std::nullopt, false}, {});
}

void ConsoleSteps::tell_at(std::int64_t step, const Overflow& overflow) {
  timeline_.found_inf(step, true);
  told_ = std::max(told_, std::optional(step));
  if (overflow.attempted) timeline_.loss_scale(step, *overflow.attempted);
  if (overflow.next) timeline_.loss_scale(step + 1, *overflow.next);
}

void ConsoleSteps::tell_range(std::int64_t first, std::optional<std::int64_t> last,
                              const Interval& count, std::optional<double> then) {
  frames::SkippedSteps steps{first, last, count, scale_, then};
  if (!pending_.empty() && pending_.front().attempted)
    steps.scale_from = pending_.front().attempted;
  for (const Overflow& overflow : pending_) {
    if (overflow.attempted) steps.scales.push_back(*overflow.attempted);
    if (overflow.next) steps.scales.push_back(*overflow.next);
  }
  if (!then && pending_count_.low > 0 && last_) steps.scale_to = last_->next;
  timeline_.skipped(steps);
}

/// How many there are of the iterations that lines named, up to the last step.
std::uint64_t ConsoleSteps::tell_named(std::int64_t last) {
  auto named = named_.since_last();
  std::erase_if(named, [&](const auto& entry) { return entry.first >= last; });
  for (const auto& [iteration, overflow] : named) tell_at(iteration + 1, overflow);
  return named.size();
}

/// Of a counter of all skipped steps, where lines without one came since the counter before: those
/// that no message told are of any step since then.
Interval ConsoleSteps::skipped_since_counter(const Periodic& done, std::int64_t lines) {
  const std::int64_t missing = *done.skipped - skipped_ - lines;
  if (missing > 0) {
    timeline_.skipped({counter_step_ + 1, done.steps, natural(missing), {}, {}});
  }
  return natural(lines);
}

/// Skipped steps that messages told and no counter so far, `now` with it, counts: a message may be
/// late, but is not printed before its step.
std::uint64_t ConsoleSteps::not_counted(std::int64_t now) const {
  const std::uint64_t counted = natural(skipped_ + now) + beyond_counters_;
  return begun_ - std::min(begun_, counted);
}

/// How many of the steps since the last line of this kind were skipped, besides those named.
Interval ConsoleSteps::skipped_between(const Periodic& done, std::int64_t steps,
                                       std::int64_t named) {
  const auto lines = static_cast<std::int64_t>(pending_count_.low) + named;
  // DeepSpeed's Megatron prints no skipped iterations, whatever is skipped.
  const bool told =
      done.skipped && (!done.of_interval || *done.skipped > 0 || survey_.counts_intervals);
  const std::int64_t before = done.of_interval ? 0 : skipped_;
  const std::int64_t skipped = told ? *done.skipped - before : lines;
  const bool of_all = told && !done.of_interval && done_ > counter_step_;
  if (of_all && skipped >= lines && skipped <= done.steps - counter_step_) {
    return without(skipped_since_counter(done, lines), Interval(natural(named)));
  }
  const Contradiction* wrong = nullptr;
  if (told && skipped < 0) {
    wrong = of_all && *done.skipped >= counted_ ? &kUncounted : &kFewerThanBefore;
  } else if (told && skipped > steps) {
    wrong = &kMoreThanSteps;
  } else if (told && skipped < lines &&
             (rank_ || named > 0 || (skipped == 0 && !done.of_interval))) {
    // Ranks that say so of the same step do not say which they are, and may say so late.
    wrong = &kUncounted;
  } else if (lines > steps && !told) {
    wrong = &kTooMany;
  }
  if (wrong != nullptr) {
    const std::string in_all = fmt::format("in all, {} of them by", before);
    contradictions_->add(
        *wrong, line_,
        fmt::format("step {}: {} skipped {} step {}, {} overflow lines between", done.steps,
                    done.skipped.value_or(0), done.of_interval ? "since" : in_all, done_, lines));
  }
  if (wrong == nullptr && told) {
    const std::uint64_t beyond = done.of_interval ? not_counted(*done.skipped) : 0;
    beyond_counters_ += beyond;
    return natural(skipped - named) + Interval(0, beyond);
  }
  const std::uint64_t most = natural(steps - named);
  if (pending_count_.low > most) perhaps_ += pending_count_.low - most;  // of ranks that are late
  return {std::min(pending_count_.low, most), std::min(pending_count_.high, most)};
}

void ConsoleSteps::place_pending(const Periodic& done, std::optional<double> scale,
                                 std::int64_t named) {
  const std::int64_t first = done_ + 1, steps = done.steps - done_;
  const Interval skipped = skipped_between(done, steps, named);
  skipped_ += static_cast<std::int64_t>(skipped.low) + named;  // a counter of all replaces it
  if (skipped.high == 0) {
    const std::int64_t none = done.of_interval ? 0 : skipped_;
    if (steps == 1 && done.skipped == none && named == 0) timeline_.found_inf(done.steps, false);
    return;
  }
  const bool one_each = named == 0 && skipped == Interval(natural(steps)) &&
                        pending_.size() == static_cast<std::size_t>(steps);
  if (one_each) {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      tell_at(first + static_cast<std::int64_t>(i), pending_[i]);
    }
  } else if (steps == 1 && skipped.exact()) {
    timeline_.found_inf(done.steps, true);
    if (!pending_.empty()) tell_at(done.steps, pending_.back());
  } else {
    tell_range(first, done.steps, skipped, scale);
  }
}

/// The attempted steps of a line that counts applied updates, as far as overflows are in the log.
Periodic ConsoleSteps::in_attempts(const Periodic& done) {
  Periodic attempted = done;
  counts_updates_ = done.counter;
  const std::int64_t more = done.steps - updates_;
  attempted.steps = more < 0 ? restarted_at(done.steps)
                             : done_ + more + static_cast<std::int64_t>(pending_count_.low);
  updates_ = done.steps;
  attempts_[done.steps] = attempted.steps;
  return attempted;
}

std::int64_t ConsoleSteps::restarted_at(std::int64_t updates) {
  const auto above = attempts_.upper_bound(updates);
  const std::int64_t extra =
      above == attempts_.begin() ? 0 : std::prev(above)->second - std::prev(above)->first;
  attempts_.erase(above, attempts_.end());
  return updates + extra;
}

/// A counter of the steps since the line before says the same where its line is printed twice.
bool ConsoleSteps::counts_another_interval(const Periodic& done) const {
  return done.of_interval && done.skipped && interval_ && interval_ != done.skipped;
}

void ConsoleSteps::take(const Periodic& printed, const LineScalars& scalars) {
  if (!any_step_ && !printed.applied && printed.steps == 0) done_ = -1;  // counted from 0
  const Periodic done = printed.applied ? in_attempts(printed) : printed;
  const bool same = any_step_ && done.steps == done_;
  const bool other = same && counts_another_interval(done);
  const bool back = done.steps < done_ || other, again = same && !other;
  any_step_ = true;
  counts_batches_ |= done.in_epoch.has_value();
  if (done.of_interval) interval_ = done.skipped;
  interval_told_ += done.of_interval ? done.skipped.value_or(0) : 0;
  if (back) go_back(done);
  count_bare(done);
  const std::uint64_t named = tell_named(back ? done.steps : kEnd);
  if (done.steps > done_) {
    place_pending(done, scalars.loss_scale, static_cast<std::int64_t>(named));
  }
  tell(done.steps, scalars);
  if (!again) forget_pending();
  if (scalars.loss_scale) {
    tell_scale();
    scale_before_ = std::exchange(scale_, scalars.loss_scale);
    scale_step_ = done.steps + 1;
  }
  done_ = done.steps;
  told_ = done_;    // a run that started again is told up to here
  named_.forget();  // of an overflow before this line
  if (!done.skipped) return;
  if (!counted_from_) {
    counted_from_ = done.of_interval ? std::max<std::int64_t>(1, done_ - survey_.apart + 1) : 1;
  }
  if (!done.of_interval) take_counter(done, again);
  counters_[done_] = skipped_;
}

/// A counter of all skipped steps; again: of the same step as the line before.
void ConsoleSteps::take_counter(const Periodic& done, bool again) {
  if (again && counter_step_ == done_ && *done.skipped != skipped_) {
    return contradictions_->add(
        kTwoCounters, line_,
        fmt::format("step {}: {} skipped, and {}", done.steps, skipped_, *done.skipped));
  }
  if (again) skipped_since_counter(done, 0);
  skipped_ = counted_ = *done.skipped;
  counter_step_ = done_;
}

/// Started again from a checkpoint. A counter tells how many steps were skipped since the counter
/// before, whichever of these the checkpoint is of; overflows before the first line of the new run
/// are of both runs, the last ones of the new one.
void ConsoleSteps::go_back(const Periodic& done) {
  went_back_ = true;
  scale_.reset();
  if (bad_part_ && bad_part_->step >= done.steps) bad_part_.reset();
  if (!done.skipped) {
    timeline_.restart(done.steps);
    done_ = done.steps;
    of_either_run_ += pending_count_.high;
    return forget_pending();
  }
  counters_.erase_from(done.steps);
  done_ = counters_.empty() ? 0 : counters_.back().step;
  skipped_ = counters_.empty() ? 0 : counters_.back().value;
  if (!done.of_interval && *done.skipped < skipped_) skipped_ = 0;  // it counts from the new run on
  counted_ = skipped_;
  counter_step_ = done_;
  timeline_.restart(done_ + 1);
  const std::uint64_t most = natural(*done.skipped - (done.of_interval ? 0 : skipped_));
  if (pending_.size() > most) {
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(most));
  }
  pending_count_ = {std::min(pending_count_.low, most), std::min(pending_count_.high, most)};
}

void ConsoleSteps::forget_pending() {
  messages_.place_all();
  pending_.clear();
  pending_count_ = {};
}

void ConsoleSteps::number_pending() {
  numbered_ = true;
  std::int64_t entry = 0;
  for (const Overflow& overflow : pending_) tell_at(entry++, overflow);
  perhaps_ += pending_count_.high - pending_count_.low;
}

void ConsoleSteps::finish(const Untold& untold) {
  named_.other();
  at_end_ = true;
  messages_.end_all([this](const auto& group) { end_messages(group); });
  not_counted_ += std::exchange(bare_, 0);
  tell_named(kEnd);
  if (survey_.steps == StepSource::bar && done_ > 0) timeline_.reached(done_);
  if (scale_ != scale_before_) tell_scale();      // of a step that is not known to be
  if (survey_.counts_intervals && !went_back_) {  // these may be late, of steps that are counted
    pending_count_.low = std::min(pending_count_.low, not_counted(0));
  }
  if (pending_count_.high == 0) {
    numbered_ = entry_ > 0;
  } else if (any_step_) {
    tell_range(done_ + 1, std::nullopt, pending_count_, std::nullopt);
  } else if (untold.between) {
    tell_range(untold.between->first, untold.between->second, pending_count_, std::nullopt);
  } else if (untold.number) {
    number_pending();
  }
}

frames::PrintingRanks ConsoleSteps::ranks() const {
  return counted_messages_ ? survey_.ranks : frames::PrintingRanks();
}

std::uint64_t ConsoleSteps::perhaps_skipped() const {
  // A step that has a message with its scale has at least one without, too.
  const std::uint64_t bare = not_counted_ - std::min(not_counted_, naming_);
  return perhaps_ + of_either_run_ + named_.perhaps() + bare;
}

}  // namespace halfscope::analyzers::readers::console
