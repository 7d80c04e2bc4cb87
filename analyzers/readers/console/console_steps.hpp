// SPDX-License-Identifier: Apache-2.0
// Which steps the lines of a console log are of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/filtered_losses.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_groups.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_named.hpp"
#include "analyzers/readers/console/console_survey.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes one run's lines in order. The nth step is n. A line that says how many steps are done and
/// skipped bounds the skipped steps since the line before; where it leaves no choice they have
/// their step, else the timeline is told between which they lie. Where no line tells a step,
/// overflows are numbered from 0.
class ConsoleSteps {
 public:
  /// What a run prints may be in several files, each with its own survey and contradictions, which
  /// outlive the taking of its lines.
  explicit ConsoleSteps(common::Timeline& timeline) : timeline_(timeline) {}
  void begin(const Survey& survey, common::Contradictions& contradictions);

  /// `number`: of the line, from 1.
  void take(const ConsoleLine& line, std::uint64_t number);
  /// What is to be done with overflows where nothing told a step.
  struct Untold {
    bool number = false;                                           ///< they are numbered
    std::optional<std::pair<std::int64_t, std::int64_t>> between;  ///< they are of these steps
  };
  void finish(const Untold& untold);

  bool any_step() const { return any_step_; }
  bool numbered() const { return numbered_; }
  bool at_minimum() const { return at_minimum_; }
  /// The last step of which more than a scale is known; empty where there is none.
  std::optional<std::int64_t> last_step() const { return told_; }
  /// The most overflows that lines say it takes to lower the scale.
  std::optional<std::int64_t> hysteresis() const { return hysteresis_; }
  /// How many processes were taken to print each message, where messages were counted by it.
  frames::PrintingRanks ranks() const;
  /// The parts of the loss where one was NaN or infinite first; empty where none was.
  const std::optional<frames::BadLossPart>& bad_loss_part() const { return bad_part_; }
  /// The first step whose skips a counter tells; empty where there is none.
  std::optional<std::int64_t> counted_from() const { return counted_from_; }
  int scaler() const { return scaler_.value_or(0); }
  std::vector<frames::OtherScaler> other_scalers() const;
  /// Steps that may have been skipped beyond those told.
  std::uint64_t perhaps_skipped() const;
  /// What was odd, one line each, without the file's name.
  std::vector<std::string> remarks() const;

 private:
  static constexpr std::size_t kMostHeld = 100'000;   // overflows between two periodic lines
  static constexpr std::size_t kMostScales = 10'000;  // of each rank

  Overflow without_rise(Overflow overflow);
  void take(const OverflowIteration& named);
  void take(const Overflow& overflow);
  bool of_other_rank(const Overflow& overflow);
  void take_message(const Overflow& overflow);
  bool begins_step(const Overflow& overflow);
  void end_messages(const MessageGroup& group);
  void take_bar(const Bar& bar);
  void take(const Periodic& done, const LineScalars& scalars);
  void take(const AppliedOverflow& applied);
  LineScalars with_applied(LineScalars scalars);
  void count_bare(const Periodic& done);
  void take_scalars(LineScalars scalars);
  void tell(std::int64_t step, LineScalars scalars);
  void take_counter(const Periodic& done, bool again);
  bool counts_another_interval(const Periodic& done) const;
  void go_back(const Periodic& done);
  Periodic in_attempts(const Periodic& done);
  std::int64_t restarted_at(std::int64_t updates);
  std::uint64_t tell_named(std::int64_t last);
  Interval skipped_since_counter(const Periodic& done, std::int64_t lines);
  std::uint64_t not_counted(std::int64_t now) const;
  Interval skipped_between(const Periodic& done, std::int64_t steps, std::int64_t named);
  void place_pending(const Periodic& done, std::optional<double> scale, std::int64_t named);
  void tell_range(std::int64_t first, std::optional<std::int64_t> last, const Interval& count,
                  std::optional<double> then);
  void tell_at(std::int64_t step, const Overflow& overflow);
  void tell_scale();
  void number_pending();
  std::vector<std::string> rank_remarks() const;
  std::vector<std::string> message_remarks() const;
  std::vector<std::string> step_remarks() const;
  void forget_pending();

  common::Timeline& timeline_;
  common::Contradictions* contradictions_ = nullptr;
  Survey survey_;
  std::uint64_t line_ = 0;  // that is taken
  NamedOverflows named_;
  std::vector<Overflow> pending_;      // whose step is not known yet; the first ones of many
  Interval pending_count_;             // all of them
  std::uint64_t begun_ = 0;            // steps that messages surely tell
  std::uint64_t beyond_counters_ = 0;  // of these, that counters of intervals do not count
  std::optional<Overflow> last_;       // message
  std::uint64_t equal_ = 0;            // messages like it, one after the other
  MessageGroups messages_;
  std::int64_t done_ = 0;     // as the last periodic line says
  std::int64_t skipped_ = 0;  // as the last counter of all says, and messages since
  std::int64_t counted_ = 0, counter_step_ = 0;    // the last counter of all
  std::int64_t updates_ = 0;                       // applied, as it says
  std::map<std::int64_t, std::int64_t> attempts_;  // by applied updates
  common::StepMap<std::int64_t> counters_;         // of skipped steps, by steps done
  std::optional<std::int64_t> counted_from_;
  std::optional<std::int64_t> told_;  // the last step that something is told of
  std::optional<std::int64_t> hysteresis_;
  std::optional<double> scale_, scale_before_;  // as the last line that has one says, and before
  std::int64_t scale_step_ = 0;                 // the first step of scale_
  std::int64_t entry_ = 0;                      // the next one of scalars that have no step
  std::optional<std::int64_t> bar_done_;
  std::uint64_t applied_ = 0;            // overflows whose update was applied
  std::optional<double> applied_scale_;  // what the last of these left
  // Messages that name no scale, in a log in which some do: since the last periodic line, and those
  // that were not counted.
  std::uint64_t bare_ = 0, not_counted_ = 0, naming_ = 0;
  bool applied_now_ = false;  // since the last periodic line
  bool of_trainer_ = false;   // the line that is taken, by Hugging Face's Trainer
  std::optional<int> rank_, scaler_;
  std::map<int, frames::OtherScaler> other_scalers_;
  std::set<Scales> scales_of_rank_;                 // that its messages name; -1: none
  std::map<Scales, std::uint64_t> of_other_ranks_;  // messages
  std::optional<std::int64_t> interval_;            // skipped steps of the last line, by itself
  std::int64_t interval_told_ = 0;                  // by all such lines
  common::FilteredLosses filtered_;
  std::optional<frames::BadLossPart> bad_part_;
  std::uint64_t repeated_ = 0;
  std::uint64_t perhaps_ = 0;
  std::uint64_t of_either_run_ = 0;  // overflows just before a line of a run that started again
  bool any_step_ = false, numbered_ = false, went_back_ = false, at_minimum_ = false;
  bool counted_messages_ = false, at_end_ = false;
  std::string counts_updates_;   // what counts them, where something does
  bool counts_batches_ = false;  // of epochs, more than one
};

}  // namespace halfscope::analyzers::readers::console
