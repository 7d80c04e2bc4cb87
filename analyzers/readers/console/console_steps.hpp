// SPDX-License-Identifier: Apache-2.0
// The steps that the lines of a console log belong to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_ranks.hpp"
#include "analyzers/readers/console/console_survey.hpp"

namespace halfscope::analyzers::readers::console {

/// Assigns the lines of one run to steps and passes their values to a timeline. Step n is the nth
/// attempted one. A line that counts done and skipped steps bounds the skipped steps since the line
/// before. If the bounds leave no choice, each skipped step is known; otherwise the timeline gets
/// their number and a range of steps. If no line has a step, overflows are numbered from 0.
/// Messages and scalars are handled in console_messages.cpp.
class ConsoleSteps {
 public:
  explicit ConsoleSteps(common::Timeline& timeline) : timeline_(timeline) {}

  /// Begins a file of the run. Comes before its lines, which `contradictions` must outlive.
  void begin(const Survey& survey, common::Contradictions& contradictions);
  /// Takes the next line. `number`: its number in the file, from 1.
  void take(const ConsoleLine& line, std::uint64_t number);
  /// Handling of overflows in a run without any step. By default they are dropped.
  struct WithoutSteps {
    bool number = false;  ///< they are numbered from 0
    std::optional<std::pair<std::int64_t, std::int64_t>> between = {};  ///< range of their steps
  };
  /// Comes after the last line.
  void finish(const WithoutSteps& handling);

  /// Returns true if steps are numbers of overflows or entries.
  bool numbered() const { return numbered_; }
  /// Adds all other results to `kind`, with remarks that it does not have yet. Comes after
  /// finish().
  void add_to(frames::LogKind& kind) const;

 private:
  /// An iteration that lines name as skipped, the number of these lines, and its scales.
  struct Named {
    Overflow scales;
    std::uint64_t times = 0;
  };

  void take_messages(const ConsoleLine& line);
  void take(Overflow overflow);
  void take_message(const Overflow& overflow);
  bool begins_step(const Overflow& overflow);
  void end_messages(const MessageGroup& group);
  void end_names();
  bool is_torn(std::int64_t iteration) const;
  std::uint64_t tell_named(std::int64_t end);
  bool is_between_counters(const ConsoleLine& line) const;
  void take_bar(const Bar& bar);
  void take(const Periodic& printed, LineScalars scalars);
  void count_bare(const Periodic& done);
  void take_scalars(LineScalars scalars);
  void tell(std::int64_t step, LineScalars scalars);
  std::int64_t unchanged(const Periodic& done) const { return done.of_interval ? 0 : skipped_; }
  void take_counter(const Periodic& done, bool again);
  void go_back(const Periodic& done);
  std::int64_t attempted(const Periodic& done);
  void take_updates(const Periodic& printed, const LineScalars& scalars, Periodic& done);
  std::uint64_t lines_without_update() const;
  void tell_missing(std::int64_t skipped, std::int64_t step);
  Interval skipped_between(const Periodic& done, std::int64_t named);
  void place_pending(const Periodic& done, std::optional<double> scale, std::int64_t named);
  void tell_range(std::int64_t first, std::optional<std::int64_t> last, const Interval& count,
                  std::optional<double> scale_to = std::nullopt);
  void tell_at(std::int64_t step, const Overflow& overflow);
  void tell_scale();
  void forget_pending();
  void add_remarks(std::vector<std::string>& remarks) const;

  common::Timeline& timeline_;
  common::Contradictions* contradictions_ = nullptr;
  Survey survey_;
  std::uint64_t line_ = 0;   // number of the current line
  bool of_trainer_ = false;  // the current line is of Hugging Face's Trainer

  // Messages of skipped steps.
  MessageGroups messages_{[this](const MessageGroup& group) { end_messages(group); }};
  std::map<std::int64_t, Named> named_;         // by iteration, since the last line with a step
  std::optional<OverflowIteration> named_now_;  // the iteration that the next scale belongs to
  bool whole_now_ = false, torn_now_ = false;   // named iterations since any other line
  std::vector<Overflow> pending_;  // overflows whose step is unknown yet: the first ones
  Interval pending_count_;         // the number of all of them
  std::optional<Overflow> last_;
  std::int64_t begun_ = 0;   // steps that messages surely belong to
  std::int64_t beyond_ = 0;  // the most of these that counters of intervals missed at a time
  // Messages without a scale, in a log in which others have one: since the last line with a step;
  // not counted; and the steps that messages with a scale belong to.
  std::uint64_t bare_ = 0, not_counted_ = 0, naming_ = 0;
  std::optional<AppliedOverflow> applied_;  // an overflow that the next line with a step applied
  std::optional<int> rank_, scaler_;        // only their messages count
  std::uint64_t of_other_ranks_ = 0;        // messages
  std::map<int, frames::OtherScaler> other_scalers_;
  std::uint64_t perhaps_ = 0;  // the most steps that were skipped besides those reported
  bool counted_messages_ = false, at_end_ = false;

  // Lines with a step.
  bool any_step_ = false, numbered_ = false;
  std::int64_t done_ = 0;                 // steps done by the last line
  std::optional<std::int64_t> told_;      // the last step with more than a scale
  std::int64_t entry_ = 0;                // number of the next scalars without a step
  std::optional<std::int64_t> bar_done_;  // steps of the progress bar over all epochs
  std::int64_t bar_before_ = 0;           // steps of the bar before this epoch
  bool counts_batches_ = false, went_back_ = false;

  // Counters.
  std::int64_t skipped_ = 0;                  // skipped steps by the last line
  std::int64_t counter_step_ = 0;             // step of the last counter of all of them
  std::optional<std::int64_t> interval_;      // by the last line since the one before
  common::StepMap<std::int64_t> counters_;    // skipped_ after each line with a counter
  std::optional<std::int64_t> counted_from_;  // first step that a counter covers
  std::optional<Periodic> last_updates_;      // the last line with applied updates
  std::optional<double> last_loss_;           // its loss
  std::uint64_t standing_ = 0;                // lines with its number of updates
  std::uint64_t updates_lines_ = 0, updates_numbers_ = 0;  // all lines, and different numbers
  bool stands_still_ = false;                              // at the log's end
  std::string counts_updates_;                             // name of a counter of applied updates
  std::map<std::int64_t, std::int64_t> lost_{{0, 0}};      // skipped steps by applied updates

  // Scalars and findings.
  std::optional<double> scale_;  // the last one printed
  std::int64_t scale_step_ = 0;  // the step after its line
  common::FilteredLosses filtered_;
  std::optional<frames::BadLossPart> bad_part_;
  std::optional<frames::PrintedLine> nonfinite_line_;
  bool broken_ = false;                     // the last loss or norm was NaN or infinite
  std::optional<std::int64_t> hysteresis_;  // the largest one printed
  bool at_minimum_ = false;
};

}  // namespace halfscope::analyzers::readers::console
