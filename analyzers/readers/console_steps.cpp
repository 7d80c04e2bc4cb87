// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

void ConsoleSteps::take(const ConsoleLine& line, std::uint64_t number) {
  line_ = number;
  if (line.odd_scale) {
    const bool zero = *line.odd_scale == 0;
    contradictions_.add(zero ? kZeroScale : kNoScale, number,
                        zero ? "" : fmt::format("{}", *line.odd_scale));
  }
  if (line.iteration) {
    any_step_ = true;
    if (iteration_ && line.iteration->iteration < *iteration_) {
      contradictions_.add(kBackwards, number,
                          fmt::format("{} after {}", line.iteration->iteration, *iteration_));
    }
    iteration_ = line.iteration->iteration;
    timeline_.found_inf(*iteration_ + 1, true);
  }
  if (line.overflow) take(without_rise(*line.overflow));
  if (line.periodic) take(*line.periodic);
}

Overflow ConsoleSteps::without_rise(Overflow overflow) {
  if (overflow.attempted && overflow.next && *overflow.next > *overflow.attempted) {
    contradictions_.add(kRises, line_,
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
  if (iteration_) {  // every rank may say so
    tell_at(*iteration_ + 1, overflow);
    return;
  }
  const bool same = last_ && overflow.next && !overflow.attempted && last_->next == overflow.next;
  repeated_ += same && !overflow.rank ? 1 : 0;
  last_ = overflow;
  if (++pending_count_ <= kMostHeld) pending_.push_back(overflow);
}

void ConsoleSteps::tell_at(std::int64_t step, const Overflow& overflow) {
  timeline_.found_inf(step, true);
  if (overflow.attempted) timeline_.loss_scale(step, *overflow.attempted);
  if (overflow.next) timeline_.loss_scale(step + 1, *overflow.next);
}

void ConsoleSteps::tell_range(std::int64_t first, std::optional<std::int64_t> last,
                              std::uint64_t count, std::optional<double> then) {
  analyzers::SkippedSteps steps{first, last, count, scale_, then};
  if (!pending_.empty() && pending_.front().attempted)
    steps.scale_from = pending_.front().attempted;
  if (!then && last_) steps.scale_to = last_->next;
  timeline_.skipped(steps);
}

/// How many of the steps since the last line of this kind were skipped.
std::int64_t ConsoleSteps::skipped_between(const Periodic& done, std::int64_t steps) {
  const auto lines = static_cast<std::int64_t>(pending_count_);
  // DeepSpeed's Megatron prints no skipped iterations, whatever is skipped.
  const bool told = done.skipped && (!done.of_interval || *done.skipped > 0);
  const bool counted_before = done_ == 0 && !done.of_interval;  // since another beginning
  const std::int64_t before = done.of_interval ? 0 : skipped_;
  const std::int64_t skipped = told ? *done.skipped - before : lines;
  const Contradiction* wrong = nullptr;
  if (told && skipped < 0) {
    wrong = &kFewerThanBefore;
  } else if (told && skipped > steps) {
    wrong = &kMoreThanSteps;
  } else if (told && skipped < lines && (rank_ || skipped == 0)) {
    wrong = &kUncounted;  // ranks that say so of the same step do not say which they are
  } else if (lines > steps && !told) {
    wrong = &kTooMany;
  }
  if (wrong != nullptr) {
    const std::string in_all = fmt::format("in all, {} of them by", before);
    contradictions_.add(
        *wrong, line_,
        fmt::format("step {}: {} skipped {} step {}, {} told in lines between", done.steps,
                    done.skipped.value_or(0), done.of_interval ? "since" : in_all, done_, lines));
  }
  // What was skipped before the log begins is in no line.
  const bool use_lines = wrong != nullptr || !told || (counted_before && lines < skipped);
  return use_lines ? std::min(lines, steps) : skipped;
}

void ConsoleSteps::place_pending(const Periodic& done, std::int64_t first) {
  const std::int64_t steps = done.steps - first + 1;
  const std::int64_t skipped = skipped_between(done, steps);
  if (skipped == 0) {
    const std::int64_t none = done.of_interval ? 0 : skipped_;
    if (steps == 1 && done.skipped == none) timeline_.found_inf(done.steps, false);
    return;
  }
  const bool one_each = skipped == steps && pending_.size() == static_cast<std::size_t>(steps);
  if (one_each) {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      tell_at(first + static_cast<std::int64_t>(i), pending_[i]);
    }
  } else if (steps == 1) {
    timeline_.found_inf(done.steps, true);
    if (!pending_.empty()) tell_at(done.steps, pending_.back());
  } else {
    tell_range(first, done.steps, static_cast<std::uint64_t>(skipped), done.loss_scale);
  }
}

void ConsoleSteps::take(const Periodic& done) {
  const bool first_line = !any_step_;
  any_step_ = true;
  if (done.loss) timeline_.loss(done.steps, *done.loss);
  if (done.learning_rate) timeline_.learning_rate(done.steps, *done.learning_rate);
  if (done.steps < done_) {  // started again from a checkpoint
    went_back_ = true;
    timeline_.restart(done.steps);
    scale_.reset();
  } else if (done.steps > done_) {
    place_pending(done, done_ + 1);
  }
  if (done.steps != done_ || first_line) {
    pending_.clear();
    pending_count_ = 0;
    last_.reset();
  }
  if (done.loss_scale) {
    tell_scale();
    scale_before_ = std::exchange(scale_, done.loss_scale);
    scale_step_ = done.steps + 1;
  }
  const bool again = done.steps == done_ && !first_line;
  done_ = done.steps;
  iteration_.reset();  // of an overflow before this line
  if (done.of_interval || !done.skipped) return;
  if (again && *done.skipped != skipped_) {  // as of two engines that write into one log
    contradictions_.add(
        kTwoCounters, line_,
        fmt::format("step {}: {} skipped, and {}", done.steps, skipped_, *done.skipped));
  } else {
    skipped_ = *done.skipped;
  }
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
}

void ConsoleSteps::finish(bool number) {
  if (scale_ != scale_before_) tell_scale();  // of a step that is not known to be
  if (pending_count_ == 0) return;
  if (any_step_) {
    tell_range(done_ + 1, std::nullopt, pending_count_, std::nullopt);
  } else if (number) {
    number_pending();
  }
}

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
  if (repeated_ > 0) {
    remarks.push_back(fmt::format(
        "{} lines reduce the scale to what the line before did: the scale had grown between, or is "
        "at its minimum, or several ranks write into one log; each is counted as a skipped step",
        repeated_));
  }
  if (numbered_ && pending_count_ > kMostHeld) {
    remarks.push_back(
        fmt::format("{} overflows tell no step; the first {} are kept", pending_count_, kMostHeld));
  }
  if (went_back_) {
    remarks.push_back(
        "the run was started again at an earlier step: what was printed of that step and later "
        "ones "
        "before holds no more, nor do overflows just before it");
  }
  return remarks;
}

}  // namespace halfscope::readers
