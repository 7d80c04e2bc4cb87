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

constexpr Contradiction kOddScale{"a loss scale is 0, infinite, NaN or negative",
                                  "0 is kept, any other is skipped"};
constexpr Contradiction kCounter{
    "the number of skipped steps does not fit the steps or the overflow lines",
    "overflow lines are counted instead, at most one a step"};
constexpr Contradiction kTwoCounters{"two lines of one step count skipped steps differently",
                                     "the first one is used"};

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
  if (line.torn && !survey_.counts_skips) ++perhaps_;
  if (line.odd_scale) contradictions_->add(kOddScale, number, fmt::format("{}", *line.odd_scale));
  const bool of_training = line.bar && bar_name(*line.bar) == survey_.bar;
  if (of_training) take_bar(*line.bar);
  take_messages(line);
  if (line.applied) applied_ = line.applied;
  LineScalars scalars = line.scalars;
  const bool of_step = line.periodic && survey_.counts(*line.periodic);
  if (applied_ && (of_step || survey_.source != StepSource::lines)) {
    if (!scalars.loss_scale) scalars.loss_scale = applied_->next;
    scalars.found_inf = false;
    applied_.reset();
  }
  if (of_step) {
    take(*line.periodic, scalars);
  } else if (is_between_counters(line)) {
    tell(line.periodic->steps, scalars);
    told_ = std::max(told_, std::optional(line.periodic->steps));
  } else if (scalars.any() && (!line.bar || of_training || scalars.step) &&
             (survey_.source != StepSource::bar || !line.periodic ||
              line.periodic->form > kHeaderForm)) {
    take_scalars(scalars);
  } else if (line.loose.any() && !line.overflow && survey_.source == StepSource::lines) {
    take_scalars(line.loose);  // only NaN and infinities are kept
  }
  if (line.scalars.evaluation_loss) {
    timeline_.evaluation_loss(bar_done_.value_or(std::max(done_, entry_ - 1)),
                              *line.scalars.evaluation_loss);
  }
}

/// Returns true for a line of another form whose step is one of the next ones, such as "step 62:
/// loss nan" between DeepSpeed's "step=60" and "step=70".
bool ConsoleSteps::is_between_counters(const ConsoleLine& line) const {
  if (!line.periodic || line.periodic->form <= kHeaderForm || !line.scalars.any()) return false;
  const std::int64_t ahead = line.periodic->steps - done_;
  return !line.periodic->in_epoch && ahead > 0 && ahead <= survey_.steps.apart;
}

void ConsoleSteps::take_bar(const Bar& bar) {
  if (begins_anew(bar, bar_done_.value_or(0) - bar_before_)) bar_before_ += bar.total;
  bar_done_ = bar_before_ + bar.done;
  if (survey_.source != StepSource::bar || *bar_done_ <= done_) return;
  take(Periodic{.steps = *bar_done_}, {});
}

void ConsoleSteps::take(const Periodic& printed, LineScalars scalars) {
  if (!any_step_ && !printed.applied && printed.steps == 0) done_ = -1;  // counted from 0
  Periodic done = printed;
  if (printed.applied) done.steps = attempted(printed);
  take_updates(printed, scalars, done);
  const bool same = any_step_ && done.steps == done_;
  // If a line is printed twice, its counter of the steps since the line before is the same.
  const bool counts_anew =
      same && done.of_interval && done.skipped && interval_.value_or(*done.skipped) != done.skipped;
  const bool back = done.steps < done_ || counts_anew, again = same && !counts_anew;
  any_step_ = true;
  counts_batches_ |= done.in_epoch.has_value();
  if (done.of_interval) interval_ = done.skipped;
  if (back) go_back(done);
  count_bare(done);
  const auto named = static_cast<std::int64_t>(tell_named(back ? done.steps : kEnd));
  if (done.steps > done_) place_pending(done, scalars.loss_scale, named);
  // One header may have several losses, such as those of two networks: NaN is not replaced.
  const bool below_header = done.form <= kHeaderForm && !done.alone;
  if (again && below_header && broken_ && scalars.loss && std::isfinite(*scalars.loss)) {
    scalars.loss.reset();
  }
  tell(done.steps, scalars);
  if (!again) forget_pending();
  done_ = done.steps;
  told_ = done_;       // after a restart, it is an earlier step than before
  named_now_.reset();  // it belongs to an overflow before this line
  if (scalars.loss_scale) {
    tell_scale();
    const bool changes = std::exchange(scale_, scalars.loss_scale) != scalars.loss_scale;
    scale_step_ = done_ + 1;
    if (changes) tell_scale();  // an unchanged scale is reported when the next line comes
  }
  if (done.skipped) take_counter(done, again);
}

/// Returns the attempted steps of a line that counts applied updates. Earlier skipped steps are
/// those of the overflows in the log.
std::int64_t ConsoleSteps::attempted(const Periodic& done) {
  counts_updates_ = done.counter;
  const std::int64_t updates = lost_.rbegin()->first;
  std::int64_t lost = done_ - updates + static_cast<std::int64_t>(pending_count_.low);
  lost_.erase(lost_.upper_bound(done.steps), lost_.end());
  if (done.steps < updates) lost = lost_.rbegin()->second;  // restarted
  lost_[done.steps] = lost;
  return done.steps + lost;
}

/// Counts lines whose updates stand still while the loss changes. Sets the skipped steps since the
/// line before, if a line has a step as well.
void ConsoleSteps::take_updates(const Periodic& printed, const LineScalars& scalars,
                                Periodic& done) {
  if (printed.applied) {
    const bool still = last_updates_ && last_updates_->steps == printed.steps;
    if (still && scalars.loss == last_loss_) return;  // the line is printed again
    standing_ = still ? standing_ + 1 : 1;
    updates_numbers_ += still ? 0 : 1;
    ++updates_lines_;
    last_loss_ = scalars.loss;
  } else if (printed.updates && survey_.updates_each_step && last_updates_) {
    const std::int64_t steps = printed.steps - last_updates_->steps;
    const std::int64_t updates = *printed.updates - last_updates_->updates.value_or(0);
    if (steps > 0 && updates >= 0 && updates <= steps) {
      done.skipped = steps - updates;
      done.of_interval = true;
    }
  }
  if (printed.applied || printed.updates) last_updates_ = printed;
}

/// Returns the number of lines at the log's end that repeat the number of updates; 0 if fewer than
/// ten lines have that number. Several ranks may print each line, so it must also come ten times as
/// often as the numbers before it.
std::uint64_t ConsoleSteps::lines_without_update() const {
  constexpr std::uint64_t kMany = 10;
  const std::uint64_t lines = updates_lines_ - standing_, numbers = updates_numbers_ - 1;
  const bool many = standing_ >= kMany && standing_ * numbers >= kMany * lines;
  return many ? standing_ - 1 : 0;
}

/// Takes a line's counter after its step. `again`: the line before is of the same step.
void ConsoleSteps::take_counter(const Periodic& done, bool again) {
  if (!counted_from_) {
    const std::int64_t first = done_ - survey_.steps.apart + 1;
    counted_from_ = done.of_interval ? std::max<std::int64_t>(1, first) : 1;
  }
  if (!done.of_interval) {
    if (again && counter_step_ == done_ && *done.skipped != skipped_) {
      return contradictions_->add(
          kTwoCounters, line_,
          fmt::format("step {}: {} skipped, and {}", done_, skipped_, *done.skipped));
    }
    if (again) tell_missing(*done.skipped - skipped_, done_);
    skipped_ = *done.skipped;
    counter_step_ = done_;
  }
  counters_[done_] = skipped_;
}

/// Reports skipped steps without a message: each is some step since the counter before.
void ConsoleSteps::tell_missing(std::int64_t skipped, std::int64_t step) {
  if (skipped > 0) timeline_.skipped({counter_step_ + 1, step, natural(skipped), {}, {}});
}

/// Handles a restart from a checkpoint. A counter covers the steps since the counter before it,
/// for any step of the checkpoint. Overflows before the first line of the new run belong to both
/// runs, the last ones to the new run.
void ConsoleSteps::go_back(const Periodic& done) {
  went_back_ = true;
  if (bad_part_ && bad_part_->step >= done.steps) bad_part_.reset();
  scale_.reset();
  if (!done.skipped) {
    timeline_.restart(done.steps);
    done_ = done.steps;
    perhaps_ += pending_count_.high;
    return forget_pending();
  }
  counters_.erase_from(done.steps);
  done_ = counters_.empty() ? 0 : counters_.back().step;
  skipped_ = counters_.empty() ? 0 : counters_.back().value;
  if (*done.skipped < unchanged(done)) skipped_ = 0;  // it counts from the restart on
  counter_step_ = done_;
  timeline_.restart(done_ + 1);
  const std::uint64_t most = natural(*done.skipped - unchanged(done));
  if (pending_.size() > most) {
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(most));
  }
  pending_count_ = {std::min(pending_count_.low, most), std::min(pending_count_.high, most)};
}

/// Returns how many steps since the last line were skipped, besides the `named` ones.
Interval ConsoleSteps::skipped_between(const Periodic& done, std::int64_t named) {
  const std::int64_t steps = done.steps - done_;
  const auto lines = static_cast<std::int64_t>(pending_count_.low) + named;
  // Under DeepSpeed, which skips steps itself, Megatron-LM's counter is always 0.
  const bool counts =
      done.skipped && (!done.of_interval || *done.skipped > 0 || survey_.counts_intervals);
  const std::int64_t skipped = counts ? *done.skipped - unchanged(done) : lines;
  // Lines without a counter of all steps came since the last such counter.
  const bool of_all = counts && !done.of_interval && done_ > counter_step_;
  if (of_all && skipped >= lines && skipped <= done.steps - counter_step_) {
    tell_missing(skipped - lines, done.steps);
    return natural(lines - named);
  }
  // Messages of unnamed ranks may be late, or several of one step.
  const bool surely = rank_ || named > 0 || (skipped == 0 && !done.of_interval);
  if (skipped < 0 || skipped > steps || (counts && skipped < lines && surely)) {
    contradictions_->add(
        kCounter, line_,
        fmt::format("step {}: {} skipped, {} by step {}, {} overflow lines between", done.steps,
                    done.skipped.value_or(0), unchanged(done), done_, lines));
  } else if (counts) {
    // A message may be late, but is never printed before its step.
    if (done.of_interval) beyond_ = std::max(beyond_, begun_ - skipped_ - *done.skipped);
    return natural(skipped - named);
  }
  const std::uint64_t most = natural(steps - named);
  perhaps_ += pending_count_.low - std::min(pending_count_.low, most);  // late messages
  return {std::min(pending_count_.low, most), std::min(pending_count_.high, most)};
}

/// Reports the skipped steps since the last line. `scale`: the one that the line prints.
void ConsoleSteps::place_pending(const Periodic& done, std::optional<double> scale,
                                 std::int64_t named) {
  const std::int64_t first = done_ + 1, steps = done.steps - done_;
  const Interval skipped = skipped_between(done, named);
  skipped_ += static_cast<std::int64_t>(skipped.low) + named;  // until the next counter of all
  if (skipped.high == 0) {
    const bool counted = named == 0 && done.skipped == unchanged(done);
    if (steps == 1 && counted) timeline_.found_inf(done.steps, false);
    return;
  }
  const bool one_each = named == 0 && skipped == Interval(natural(steps)) &&
                        pending_.size() == static_cast<std::size_t>(steps);
  if (one_each) {
    for (std::int64_t step = first; const Overflow& overflow : pending_) tell_at(step++, overflow);
  } else if (steps == 1 && skipped.exact()) {
    tell_at(done.steps, pending_.empty() ? Overflow() : pending_.back());
  } else {
    tell_range(first, done.steps, skipped, scale);
  }
}

void ConsoleSteps::tell_at(std::int64_t step, const Overflow& overflow) {
  timeline_.found_inf(step, true);
  told_ = std::max(told_, std::optional(step));
  if (overflow.attempted) timeline_.loss_scale(step, *overflow.attempted);
  if (overflow.next) timeline_.loss_scale(step + 1, *overflow.next);
}

/// Reports `count` skipped steps from `first` to `last`. `scale_to`: the scale after them, if a
/// line prints it; else the last message may have it.
void ConsoleSteps::tell_range(std::int64_t first, std::optional<std::int64_t> last,
                              const Interval& count, std::optional<double> scale_to) {
  frames::SkippedSteps steps{first, last, count, scale_, scale_to};
  if (!pending_.empty() && pending_.front().attempted) {
    steps.scale_from = pending_.front().attempted;
  }
  for (const Overflow& overflow : pending_) {
    if (overflow.attempted) steps.scales.push_back(*overflow.attempted);
    if (overflow.next) steps.scales.push_back(*overflow.next);
  }
  if (!scale_to && pending_count_.low > 0 && last_) steps.scale_to = last_->next;
  timeline_.skipped(steps);
}

/// Reports the scale of the last line with one: it is that of the step after the line.
void ConsoleSteps::tell_scale() {
  if (!scale_) return;
  timeline_.loss_scale(scale_step_, *scale_);
  timeline_.recorded_scale("loss scale", scale_step_, *scale_);
}

void ConsoleSteps::forget_pending() {
  messages_.place_all();
  pending_.clear();
  pending_count_ = {};
}

void ConsoleSteps::finish(const WithoutSteps& handling) {
  at_end_ = true;
  end_names();
  messages_.end_all();
  not_counted_ += std::exchange(bare_, 0);
  tell_named(kEnd);
  if (survey_.source == StepSource::bar && done_ > 0) timeline_.reached(done_);
  perhaps_ += natural(beyond_);
  if (survey_.counts_intervals && !went_back_) {  // late messages may be of counted steps
    pending_count_.low = std::min(pending_count_.low, natural(begun_ - skipped_ - beyond_));
  }
  stands_still_ = pending_count_.high == 0 && lines_without_update() > 0;
  if (stands_still_) {  // each line is at least one skipped step
    const std::uint64_t skipped = lines_without_update();
    told_ = done_ + static_cast<std::int64_t>(skipped);
    tell_range(done_ + 1, told_, skipped);
  } else if (pending_count_.high == 0) {
    numbered_ = entry_ > 0;
  } else if (any_step_) {
    tell_range(done_ + 1, std::nullopt, pending_count_);
  } else if (handling.between) {
    tell_range(handling.between->first, handling.between->second, pending_count_);
  } else if (handling.number) {
    numbered_ = true;
    for (std::int64_t entry = 0; const Overflow& overflow : pending_) tell_at(entry++, overflow);
    perhaps_ += pending_count_.high - pending_.size();
  }
}

void ConsoleSteps::add_to(frames::LogKind& kind) const {
  // A step with a message that has a scale has at least one message without.
  const std::uint64_t bare = not_counted_ - std::min(not_counted_, naming_);
  kind.perhaps_skipped += perhaps_ + bare;
  kind.ended_at_minimum |= at_minimum_;
  kind.skips_at_least |= stands_still_;
  kind.last_step = std::max(kind.last_step, told_);
  kind.hysteresis = std::max(kind.hysteresis, hysteresis_);
  if (counted_messages_ && survey_.ranks.ranks > 1) kind.ranks = survey_.ranks;
  if (!kind.counted_from) kind.counted_from = counted_from_;
  if (!kind.bad_loss_part) kind.bad_loss_part = bad_part_;
  if (nonfinite_line_) kind.nonfinite_line = nonfinite_line_;
  if (!other_scalers_.empty()) kind.scaler = scaler_.value_or(0);
  for (const auto& [scaler, other] : other_scalers_) kind.other_scalers.push_back(other);
  add_remarks(kind.remarks);
}

void ConsoleSteps::add_remarks(std::vector<std::string>& remarks) const {
  const auto add = [&](bool holds, const std::string& text) {
    if (holds && std::ranges::find(remarks, text) == remarks.end()) remarks.push_back(text);
  };
  add(of_other_ranks_ > 0,
      fmt::format("{} lines of {} are skipped", of_other_ranks_,
                  rank_ ? fmt::format("other ranks than {}", *rank_) : "ranks that are named"));
  add(survey_.paired,
      "equal messages of one rank follow each other: two engines write to the log, such as an "
      "actor and a critic, or each line is printed twice; the number of skipped steps is a range, "
      "and the scales may be of both");
  add(!counts_updates_.empty(),
      counts_updates_ +
          " counts applied updates: a step number here is that count plus the "
          "skipped steps before it");
  add(counts_batches_,
      "the log counts batches from each epoch's beginning: an epoch is taken to end with its last "
      "printed batch, so step numbers after the first epoch are at least these");
  add(survey_.source == StepSource::bar && any_step_,
      "no line has a step: steps are taken from the progress bar");
  add(survey_.form == kEpochForm, "lines have an epoch and no step: the steps shown are epochs");
  const bool entries = survey_.source == StepSource::none && !any_step_;
  const std::string filtered = filtered_.text(entries ? "entry" : "step");
  add(!filtered.empty(), filtered);
  add(went_back_,
      "the run was restarted at an earlier step: what earlier lines say of that step and later "
      "ones is discarded");
}

}  // namespace halfscope::analyzers::readers::console
