// SPDX-License-Identifier: Apache-2.0
// Which steps the lines of a console log are of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/filtered_losses.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_ranks.hpp"
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

  bool numbered() const { return numbered_; }
  /// Adds what is known of the log besides its steps. After finish().
  void add_to(frames::LogKind& kind) const;
  /// What to know of the steps, one line each, without the file's name.
  std::vector<std::string> remarks() const;

 private:
  /// A skipped step that lines name, in how many lines, and its scales.
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
  LineScalars without_hiding(const Periodic& printed, LineScalars scalars) const;
  bool is_between_counters(const ConsoleLine& line) const;
  void take_bar(const Bar& bar);
  void take(const Periodic& printed, const LineScalars& scalars);
  void count_bare(const Periodic& done);
  void take_scalars(LineScalars scalars);
  void tell(std::int64_t step, LineScalars scalars);
  void take_counter(const Periodic& done, bool again);
  void go_back(const Periodic& done);
  std::int64_t attempted(const Periodic& done);
  void tell_missing(std::int64_t skipped, std::int64_t step);
  Interval skipped_between(const Periodic& done, std::int64_t named);
  void place_pending(const Periodic& done, std::optional<double> scale, std::int64_t named);
  void tell_range(std::int64_t first, std::optional<std::int64_t> last, const Interval& count,
                  std::optional<double> then);
  void tell_at(std::int64_t step, const Overflow& overflow);
  void tell_scale();
  void forget_pending();

  common::Timeline& timeline_;
  common::Contradictions* contradictions_ = nullptr;
  Survey survey_;
  std::uint64_t line_ = 0;   // that is taken
  bool of_trainer_ = false;  // it is printed by Hugging Face's Trainer

  // Messages.
  MessageGroups messages_{[this](const MessageGroup& group) { end_messages(group); }};
  std::map<std::int64_t, Named> named_;         // by iteration, since the last line with a step
  std::optional<OverflowIteration> named_now_;  // whose scale comes next
  bool whole_now_ = false, torn_now_ = false;   // names since a line of something else
  std::vector<Overflow> pending_;  // whose step is not known yet; the first ones of many
  Interval pending_count_;         // all of them
  std::optional<Overflow> last_;
  // Steps that messages surely tell, and of these the most that counters of intervals did not count
  // at a time.
  std::int64_t begun_ = 0, beyond_ = 0;
  // Those that name no scale, in a log in which some do: since the last line with a step, those
  // that were not counted, and steps that others name.
  std::uint64_t bare_ = 0, not_counted_ = 0, naming_ = 0;
  std::optional<AppliedOverflow> applied_;  // of the step whose line follows
  std::optional<int> rank_, scaler_;        // whose messages count
  std::uint64_t of_other_ranks_ = 0;
  std::map<int, frames::OtherScaler> other_scalers_;
  std::uint64_t perhaps_ = 0;  // steps skipped besides those told
  bool counted_messages_ = false, at_end_ = false;

  // Lines with a step.
  std::int64_t done_ = 0;                              // as the last one says
  std::int64_t skipped_ = 0, counter_step_ = 0;        // by the last counter of all, and since
  std::optional<std::int64_t> interval_;               // skipped, as the last line says
  common::StepMap<std::int64_t> counters_;             // of skipped steps, by steps done
  std::int64_t updates_ = 0;                           // applied, as the last line says
  std::map<std::int64_t, std::int64_t> lost_{{0, 0}};  // skipped steps, by applied updates
  std::optional<double> scale_, scale_before_;         // of the last line with one, and before it
  std::int64_t scale_step_ = 0;                        // the first step of scale_
  std::int64_t entry_ = 0;                             // the next one of scalars without a step
  std::optional<std::int64_t> bar_done_;               // over all epochs
  std::int64_t bar_last_ = 0, bar_before_ = 0;         // of this epoch, and steps before it
  common::FilteredLosses filtered_;
  std::optional<frames::BadLossPart> bad_part_;
  std::optional<frames::PrintedLine> nonfinite_line_;
  bool broken_ = false;  // the last loss or norm was NaN or infinite

  std::optional<std::int64_t> counted_from_;  // the first step whose skips a counter tells
  std::optional<std::int64_t> told_;          // the last step of which more than a scale is known
  std::optional<std::int64_t> hysteresis_;    // the most that lines say
  bool any_step_ = false, numbered_ = false, went_back_ = false, at_minimum_ = false;
  std::string counts_updates_;   // what counts them, where something does
  bool counts_batches_ = false;  // of epochs, more than one
};

}  // namespace halfscope::analyzers::readers::console
