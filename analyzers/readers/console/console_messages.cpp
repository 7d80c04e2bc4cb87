// SPDX-License-Identifier: Apache-2.0
// Parts of ConsoleSteps that assign messages, which several ranks may print, and scalars to steps.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_steps.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes the messages of a line. Any other line ends the group of lines that name one step.
void ConsoleSteps::take_messages(const ConsoleLine& line) {
  if (line.iteration) {
    named_now_ = line.iteration;
    const bool whole = line.iteration->iteration.has_value();
    any_step_ |= whole;
    (whole ? whole_now_ : torn_now_) = true;
    if (whole) ++named_[*line.iteration->iteration].times;
  } else if (!line.overflow) {
    end_names();
  }
  if (line.overflow) {
    take(*line.overflow);
  } else {
    messages_.line(line);
  }
}

void ConsoleSteps::take(Overflow overflow) {
  // A skipped step does not raise the scale: another process tore the number.
  if (overflow.attempted && overflow.next > overflow.attempted) overflow.next.reset();
  if (!overflow.of_named && !overflow.confirms && rank_ != overflow.rank) {
    ++of_other_ranks_;
    return;
  }
  if (scaler_.value_or(overflow.scaler) != overflow.scaler) {
    frames::OtherScaler& other = other_scalers_[overflow.scaler];
    other.scaler = overflow.scaler;
    ++other.messages;
    if (overflow.next) other.scale_last = overflow.next;
    return;
  }
  scaler_ = overflow.scaler;
  if (!named_now_) {
    if (!overflow.of_named) take_message(overflow);  // else the line with its iteration was lost
  } else if (named_now_->iteration) {
    Overflow& scales = named_[*named_now_->iteration].scales;
    if (overflow.attempted) scales.attempted = overflow.attempted;
    if (overflow.next) scales.next = overflow.next;
  }
}

/// Takes a message that names no iteration. If it names no rank, any rank may have printed it.
void ConsoleSteps::take_message(const Overflow& overflow) {
  constexpr std::size_t kMostHeld = 100'000;
  if (survey_.names_scales && overflow.bare) {
    ++bare_;  // every rank prints these, mostly for the step of a message with a scale
    return;
  }
  if (overflow.confirms && last_ && !last_->confirms && last_->attempted == overflow.attempted) {
    return;
  }
  const bool equal = std::exchange(last_, overflow) == overflow;
  const bool paired = overflow.rank && survey_.paired;
  const bool another = overflow.rank ? !paired || !equal : begins_step(overflow);
  const bool perhaps = paired || (!survey_.ranks.certain && !survey_.torn_runs);
  counted_messages_ |= !overflow.rank;
  pending_count_ += Interval(another ? 1 : 0, another || perhaps ? 1 : 0);
  if (!another) return;
  ++begun_;
  naming_ += overflow.next ? 1 : 0;
  if (pending_.size() < kMostHeld) pending_.push_back(overflow);
}

/// Returns true if a message surely belongs to a new step: no message before it belongs to that
/// step. Called for messages that name no rank.
bool ConsoleSteps::begins_step(const Overflow& overflow) {
  const std::uint64_t before = messages_.take(overflow).count - 1;
  return before == 0 || (survey_.ranks.certain && before % survey_.ranks.ranks == 0);
}

/// Counts the steps of a complete group of equal messages. Each message may belong to another step,
/// unless every rank printed one message per step.
void ConsoleSteps::end_messages(const MessageGroup& group) {
  const std::uint64_t ranks = survey_.ranks.ranks;
  // In an excerpt, messages of some ranks for the last steps may be missing.
  if (at_end_ && survey_.cut && survey_.ranks.certain && ranks > 1 && group.count > ranks) {
    perhaps_ += group.count - group.count / ranks;
  }
  if (!survey_.torn_runs) return;
  const bool whole = group.count % ranks == 0 && !survey_.uneven.contains(group.scales());
  const std::uint64_t most = whole ? group.count / ranks : group.count;
  const std::uint64_t least = survey_.ranks.certain ? (group.count + ranks - 1) / ranks : 1;
  (group.placed ? perhaps_ : pending_count_.high) += most - least;
}

/// Ends the lines in which ranks name one skipped step. If all were torn, it may be a further step.
void ConsoleSteps::end_names() {
  perhaps_ += torn_now_ && !whole_now_ ? 1 : 0;
  torn_now_ = whole_now_ = false;
}

/// Returns true if the number of a named iteration is two numbers written one after the other:
/// equal or adjacent iterations of two ranks, the first named by at least twice as many lines.
bool ConsoleSteps::is_torn(std::int64_t iteration) const {
  const std::string digits = std::to_string(iteration);
  for (std::size_t at = 1; at < digits.size(); ++at) {
    const auto first = common::integer_in(std::string_view(digits).substr(0, at));
    const auto second = common::integer_in(std::string_view(digits).substr(at));
    const auto known = first ? named_.find(*first) : named_.end();
    if (known == named_.end() || !second || std::abs(*first - *second) > 1) continue;
    if (2 * named_.at(iteration).times <= known->second.times) return true;
  }
  return false;
}

/// Passes the named skipped steps before `end` to the timeline, and returns their number.
std::uint64_t ConsoleSteps::tell_named(std::int64_t end) {
  std::uint64_t told = 0;
  for (const auto& [iteration, named] : named_) {
    if (iteration >= end || is_torn(iteration)) continue;
    tell_at(iteration + 1, named.scales);
    ++told;
  }
  named_.clear();
  return told;
}

/// Counts messages without a scale before a line with a step: as one skipped step if one step was
/// done since the last such line. Otherwise adds them to not_counted_.
void ConsoleSteps::count_bare(const Periodic& done) {
  const std::uint64_t bare = std::exchange(bare_, 0);
  if (bare == 0) return;
  if (done.steps - done_ != 1) {
    not_counted_ += bare;
  } else if (pending_count_.high == 0) {
    pending_.emplace_back();
    pending_count_ += Interval(1);
  }
}

void ConsoleSteps::tell(std::int64_t step, LineScalars scalars) {
  if (of_trainer_) filtered_.take(step, scalars.loss, scalars.gradient_norm);
  if (scalars.loss) timeline_.loss(step, *scalars.loss);
  if (scalars.learning_rate) timeline_.learning_rate(step, *scalars.learning_rate);
  if (scalars.gradient_norm) timeline_.gradient_norm(step, *scalars.gradient_norm);
  if (scalars.nan_iterations) timeline_.nan_iterations(step, *scalars.nan_iterations);
  if (scalars.found_inf) timeline_.found_inf(step, *scalars.found_inf);
  const auto broke = [](const std::optional<double>& value) {
    return value && !std::isfinite(*value);
  };
  if (scalars.loss || scalars.gradient_norm) {
    const bool bad = broke(scalars.loss) || broke(scalars.gradient_norm);
    if (bad && !broken_) nonfinite_line_ = frames::PrintedLine{step, line_};
    broken_ = bad;
  }
  // If all parts are finite at a later step, the earlier part did not break the loss.
  if (scalars.parts > 0 && scalars.bad_parts == 0 && bad_part_ && bad_part_->step < step) {
    bad_part_.reset();
  }
  if (scalars.bad_parts > 0 && !bad_part_) {
    bad_part_ = frames::BadLossPart{step, log::printable(scalars.bad_part), scalars.bad_parts,
                                    scalars.parts};
  }
}

/// Takes the scalars of a line without progress. Their step is a field of the progress bar, the
/// bar's count, or that of the last line with a step. Without any, entries are numbered.
void ConsoleSteps::take_scalars(LineScalars scalars) {
  const bool none = survey_.source == StepSource::none && !scalars.step;
  if (none && survey_.overflows) return;  // overflows number the entries
  if (survey_.source == StepSource::lines && !scalars.step) {
    // Lines with a step have these, too. A finite loss is used only if it is a Trainer's 0.
    const auto reset_finite = [](std::optional<double>& value) {
      if (value && std::isfinite(*value)) value.reset();
    };
    if (!of_trainer_ || scalars.loss != 0) reset_finite(scalars.loss);
    scalars.learning_rate.reset();
    scalars.loss_scale.reset();
  }
  any_step_ |= scalars.step.has_value();
  const std::int64_t step = scalars.step ? *scalars.step
                            : none       ? entry_++
                                         : bar_done_.value_or(done_);
  tell(step, scalars);
  told_ = std::max(told_, std::optional(step));
  if (scalars.loss_scale) timeline_.loss_scale(step, *scalars.loss_scale);
}

}  // namespace halfscope::analyzers::readers::console
