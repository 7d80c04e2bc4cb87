// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace halfscope::readers {
namespace {

constexpr std::size_t kMostHeld = 100'000;  // overflows between two periodic lines, in order

}  // namespace

void ConsoleSteps::take(const ConsoleLine& line) {
  if (line.iteration) {
    any_step_ = true;
    iteration_ = line.iteration->iteration;
    timeline_.found_inf(*iteration_ + 1, true);
  }
  if (line.overflow) take(*line.overflow);
  if (line.periodic) take(*line.periodic);
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
  const bool same = last_ && !overflow.attempted && last_->next == overflow.next;
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
  ranges_ = true;
  analyzers::SkippedSteps steps{first, last, count, scale_, then};
  if (!pending_.empty() && pending_.front().attempted)
    steps.scale_from = pending_.front().attempted;
  if (!then && last_) steps.scale_to = last_->next;
  timeline_.skipped(steps);
}

void ConsoleSteps::place_pending(const Periodic& done, std::int64_t first) {
  const std::int64_t steps = done.steps - first + 1;
  std::int64_t skipped = static_cast<std::int64_t>(pending_count_);
  // DeepSpeed's Megatron prints no skipped iterations, whatever is skipped.
  const bool told = done.skipped && (!done.of_interval || *done.skipped > 0);
  if (told) skipped = *done.skipped - (done.of_interval ? 0 : skipped_);
  if (skipped < 0 || skipped > steps || (done_ == 0 && !done.of_interval)) {
    skipped = static_cast<std::int64_t>(pending_count_);  // counted since another beginning
  }
  if (skipped == 0) {
    if (steps == 1 && done.skipped) timeline_.found_inf(done.steps, false);
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
  done_ = done.steps;
  if (!done.of_interval && done.skipped) skipped_ = *done.skipped;
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
