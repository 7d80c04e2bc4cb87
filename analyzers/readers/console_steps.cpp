// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::readers {
namespace {

constexpr std::size_t kMostHeld = 100'000;  // overflows between two periodic lines, in order

constexpr Contradiction kNoScale{"what stands for a loss scale is infinite, nan or negative",
                                 "it is left out, what else its line says counts"};
constexpr Contradiction kZeroScale{
    "the loss scale became 0",
    "from there on gradients are multiplied and divided by 0, and no step can do anything"};
constexpr Contradiction kBackwards{
    "an overflow names an earlier iteration than the one before",
    "all count: the run was started again, or several ranks write into one log"};
constexpr Contradiction kMoreThanSteps{"more steps are said to be skipped than were done",
                                       "the lines of overflows are counted instead"};
constexpr Contradiction kFewerThanBefore{"fewer steps are said to be skipped in all than before",
                                         "the lines of overflows are counted instead"};
constexpr Contradiction kUncounted{"more overflows are told than steps are said to be skipped",
                                   "the lines of overflows are counted instead"};
constexpr Contradiction kTwoCounters{"two lines of one step count skipped steps differently",
                                     "the first one is used"};
constexpr Contradiction kRises{"a skipped step raised the loss scale",
                               "what it became is left out"};
constexpr Contradiction kTooMany{"more overflows are told than steps were done",
                                 "no more than these steps count as skipped"};

std::uint64_t natural(std::int64_t count) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, count));
}

}  // namespace

void ConsoleSteps::begin(const Survey& survey, Contradictions& contradictions) {
  survey_ = survey;
  contradictions_ = &contradictions;
}

void ConsoleSteps::take(const ConsoleLine& line, std::uint64_t number) {
  line_ = number;
  at_minimum_ |= line.at_minimum;
  if (line.odd_scale) {
    const bool zero = *line.odd_scale == 0;
    contradictions_->add(zero ? kZeroScale : kNoScale, number,
                         zero ? "" : fmt::format("{}", *line.odd_scale));
  }
  const bool of_training = line.bar && !survey_.bar.empty() && bar_name(*line.bar) == survey_.bar;
  if (of_training) take_bar(*line.bar);
  if (line.iteration) take(*line.iteration);
  if (line.overflow) take(without_rise(*line.overflow));
  if (!line.iteration && !line.overflow) named_.other();
  if (line.periodic) {
    take(*line.periodic, line.scalars);
  } else if (line.scalars.any() && (!line.bar || of_training || line.scalars.step)) {
    take_scalars(line.scalars);
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

void ConsoleSteps::take(const Overflow& overflow) {
  if (overflow.rank && rank_.value_or(*overflow.rank) != *overflow.rank) {
    ++of_other_ranks_;
    return;
  }
  if (overflow.rank) rank_ = overflow.rank;
  if (scaler_.value_or(overflow.scaler) != overflow.scaler) {
    ++of_other_scalers_;
    return;
  }
  scaler_ = overflow.scaler;
  if (!named_.scale(overflow)) take_message(overflow);
}

/// A message that names no iteration: of every rank, where it does not say of which.
void ConsoleSteps::take_message(const Overflow& overflow) {
  if (overflow.confirms && last_ && !last_->confirms && last_->attempted == overflow.attempted) {
    return;
  }
  const bool equal = last_ == overflow;
  const bool same = last_ && overflow.next && !overflow.attempted && equal;
  if (!equal) end_run();
  equal_ = equal ? equal_ + 1 : 0;
  last_ = overflow;
  const bool another = overflow.rank || equal_ % survey_.ranks.ranks == 0;
  const bool perhaps = !survey_.ranks.certain && !survey_.torn_runs;
  counted_messages_ |= !overflow.rank;
  pending_count_ += Interval(another ? 1 : 0, another || perhaps ? 1 : 0);
  if (!another) return;
  repeated_ += same && !overflow.rank && survey_.ranks.ranks == 1 ? 1 : 0;
  if (pending_count_.low <= kMostHeld) pending_.push_back(overflow);
}

/// Of a run of equal messages that is no multiple of the ranks, each may be another step's.
void ConsoleSteps::end_run() {
  const std::uint64_t ranks = survey_.ranks.ranks, length = equal_ + 1;
  if (!last_ || last_->rank || !survey_.torn_runs || length % ranks == 0) return;
  pending_count_.high += length - (length + ranks - 1) / ranks;
}

void ConsoleSteps::take_bar(const Bar& bar) {
  bar_done_ = bar.done;
  if (survey_.steps != StepSource::bar || bar.done <= done_) return;
  take(Periodic{bar.done, false, std::nullopt, false}, {});
}

void ConsoleSteps::tell_at(std::int64_t step, const Overflow& overflow) {
  timeline_.found_inf(step, true);
  if (overflow.attempted) timeline_.loss_scale(step, *overflow.attempted);
  if (overflow.next) timeline_.loss_scale(step + 1, *overflow.next);
}

void ConsoleSteps::tell_range(std::int64_t first, std::optional<std::int64_t> last,
                              const Interval& count, std::optional<double> then) {
  analyzers::SkippedSteps steps{first, last, count, scale_, then};
  if (!pending_.empty() && pending_.front().attempted)
    steps.scale_from = pending_.front().attempted;
  if (!then && pending_count_.low > 0 && last_) steps.scale_to = last_->next;
  timeline_.skipped(steps);
}

/// How many there are of the iterations that lines named.
std::uint64_t ConsoleSteps::tell_named() {
  const auto named = named_.since_last();
  for (const auto& [iteration, overflow] : named) tell_at(iteration + 1, overflow);
  return named.size();
}

/// How many of the steps since the last line of this kind were skipped, besides those named.
Interval ConsoleSteps::skipped_between(const Periodic& done, std::int64_t steps,
                                       std::int64_t named) {
  const auto lines = static_cast<std::int64_t>(pending_count_.low) + named;
  // DeepSpeed's Megatron prints no skipped iterations, whatever is skipped.
  const bool told = done.skipped && (!done.of_interval || *done.skipped > 0);
  const std::int64_t before = done.of_interval ? 0 : skipped_;
  const std::int64_t skipped = told ? *done.skipped - before : lines;
  const Contradiction* wrong = nullptr;
  if (told && skipped < 0) {
    wrong = &kFewerThanBefore;
  } else if (told && skipped > steps) {
    wrong = &kMoreThanSteps;
  } else if (told && skipped < lines && (rank_ || named > 0 || skipped == 0)) {
    wrong = &kUncounted;  // ranks that say so of the same step do not say which they are
  } else if (lines > steps && !told) {
    wrong = &kTooMany;
  }
  if (wrong != nullptr) {
    const std::string in_all = fmt::format("in all, {} of them by", before);
    contradictions_->add(
        *wrong, line_,
        fmt::format("step {}: {} skipped {} step {}, {} told in lines between", done.steps,
                    done.skipped.value_or(0), done.of_interval ? "since" : in_all, done_, lines));
  }
  if (wrong == nullptr && told) return natural(skipped - named);
  const std::uint64_t most = natural(steps - named);
  return {std::min(pending_count_.low, most), std::min(pending_count_.high, most)};
}

void ConsoleSteps::place_pending(const Periodic& done, std::optional<double> scale,
                                 std::int64_t named) {
  const std::int64_t first = done_ + 1, steps = done.steps - done_;
  const Interval skipped = skipped_between(done, steps, named);
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
  counts_updates_ = true;
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

void ConsoleSteps::take(const Periodic& printed, const LineScalars& scalars) {
  const Periodic done = printed.applied ? in_attempts(printed) : printed;
  const bool first_line = !any_step_;
  any_step_ = true;
  const std::uint64_t named = tell_named();
  const bool again = done.steps == done_ && !first_line;
  if (done.steps < done_) {  // started again from a checkpoint
    went_back_ = true;
    timeline_.restart(done.steps);
    scale_.reset();
  } else if (done.steps > done_) {
    place_pending(done, scalars.loss_scale, static_cast<std::int64_t>(named));
  }
  if (scalars.loss) timeline_.loss(done.steps, *scalars.loss);
  if (scalars.learning_rate) timeline_.learning_rate(done.steps, *scalars.learning_rate);
  if (scalars.gradient_norm) timeline_.gradient_norm(done.steps, *scalars.gradient_norm);
  if (scalars.nan_iterations) timeline_.nan_iterations(done.steps, *scalars.nan_iterations);
  if (!again) forget_pending();
  if (scalars.loss_scale) {
    tell_scale();
    scale_before_ = std::exchange(scale_, scalars.loss_scale);
    scale_step_ = done.steps + 1;
  }
  done_ = done.steps;
  named_.forget();  // of an overflow before this line
  if (done.of_interval || !done.skipped) return;
  if (again && *done.skipped != skipped_) {
    contradictions_->add(
        kTwoCounters, line_,
        fmt::format("step {}: {} skipped, and {}", done.steps, skipped_, *done.skipped));
  } else {
    skipped_ = *done.skipped;
  }
}

/// Of a line that tells no steps itself: those of the progress bar, of a field in it, or none.
void ConsoleSteps::take_scalars(LineScalars scalars) {
  const bool none = survey_.steps == StepSource::none && !scalars.step;
  if (none && survey_.overflows) return;  // entries are numbered by these
  if (survey_.steps == StepSource::lines && !scalars.step) {
    // Lines that tell steps have their own scalars: it tells what broke alone.
    const auto broke = [](std::optional<double>& value) {
      if (value && std::isfinite(*value)) value.reset();
    };
    broke(scalars.loss);
    scalars.learning_rate.reset();
    scalars.loss_scale.reset();
  }
  any_step_ |= scalars.step.has_value();
  const std::int64_t step = scalars.step ? *scalars.step
                            : none       ? ++entry_
                                         : bar_done_.value_or(done_);
  if (scalars.loss) timeline_.loss(step, *scalars.loss);
  if (scalars.learning_rate) timeline_.learning_rate(step, *scalars.learning_rate);
  if (scalars.gradient_norm) timeline_.gradient_norm(step, *scalars.gradient_norm);
  if (scalars.loss_scale) timeline_.loss_scale(step, *scalars.loss_scale);
}

void ConsoleSteps::forget_pending() {
  pending_.clear();
  pending_count_ = {};
}

void ConsoleSteps::tell_scale() {
  if (!scale_) return;
  timeline_.loss_scale(scale_step_, *scale_);
  timeline_.recorded_scale("loss scale", scale_step_, *scale_);
}

void ConsoleSteps::number_pending() {
  numbered_ = true;
  std::int64_t entry = 0;
  for (const Overflow& overflow : pending_) tell_at(entry++, overflow);
  perhaps_ += pending_count_.high - pending_count_.low;
}

void ConsoleSteps::finish(const Untold& untold) {
  named_.other();
  end_run();
  tell_named();
  if (survey_.steps == StepSource::bar && done_ > 0) timeline_.reached(done_);
  if (scale_ != scale_before_) tell_scale();  // of a step that is not known to be
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

analyzers::PrintingRanks ConsoleSteps::ranks() const {
  return counted_messages_ ? survey_.ranks : analyzers::PrintingRanks();
}

std::uint64_t ConsoleSteps::perhaps_skipped() const { return perhaps_ + named_.perhaps(); }

std::vector<std::string> ConsoleSteps::remarks() const {
  std::vector<std::string> remarks;
  if (of_other_ranks_ > 0) {
    remarks.push_back(fmt::format("{} lines of other ranks than {} say the same and are left out",
                                  of_other_ranks_, rank_.value_or(0)));
  }
  if (of_other_scalers_ > 0) {
    remarks.push_back(fmt::format("{} lines are of another loss scaler than {} and are left out",
                                  of_other_scalers_, scaler_.value_or(0)));
  }
  if (named_.torn() > 0) {
    remarks.push_back(
        fmt::format("{} lines that name an iteration are torn by another process's "
                    "and tell no step",
                    named_.torn()));
  }
  if (repeated_ > 0) {
    remarks.push_back(fmt::format(
        "{} lines reduce the scale to what the line before did: the scale had grown between, or is "
        "at its minimum, or several ranks write into one log; each is counted as a skipped step",
        repeated_));
  }
  if (numbered_ && pending_count_.low > kMostHeld) {
    remarks.push_back(fmt::format("{} overflows tell no step; the first {} are kept",
                                  pending_count_.low, kMostHeld));
  }
  if (counts_updates_) {
    remarks.push_back(
        "num_updates counts applied updates: steps here are these and the skipped ones before");
  }
  if (survey_.steps == StepSource::bar && any_step_) {
    remarks.push_back("no line tells the step: steps are those of the progress bar");
  }
  if (went_back_) {
    remarks.push_back(
        "the run was started again at an earlier step: what was printed of that step and later "
        "ones before holds no more, nor do overflows just before it");
  }
  return remarks;
}

}  // namespace halfscope::readers
