// SPDX-License-Identifier: Apache-2.0
// Which steps the lines of a console log are of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/console_lines.hpp"
#include "analyzers/readers/contradictions.hpp"
#include "analyzers/readers/timeline.hpp"

namespace halfscope::readers {

/// Takes one file's lines in order. The nth step is n. A line that says how many steps are done and
/// skipped bounds the skipped steps since the line before; where it leaves no choice they have
/// their step, else the timeline is told between which they lie. Where no line tells a step,
/// overflows are numbered from 0.
class ConsoleSteps {
 public:
  ConsoleSteps(Timeline& timeline, Contradictions& contradictions)
      : timeline_(timeline), contradictions_(contradictions) {}

  /// `number`: of the line, from 1.
  void take(const ConsoleLine& line, std::uint64_t number);
  /// `number`: whether overflows of a file that tells no step may be numbered.
  void finish(bool number);

  bool any_step() const { return any_step_; }
  bool numbered() const { return numbered_; }
  /// What was odd, one line each, without the file's name.
  std::vector<std::string> remarks() const;

 private:
  Overflow without_rise(Overflow overflow);
  void take(const Overflow& overflow);
  void take(const Periodic& done);
  std::int64_t skipped_between(const Periodic& done, std::int64_t steps);
  void place_pending(const Periodic& done, std::int64_t first);
  void tell_range(std::int64_t first, std::optional<std::int64_t> last, std::uint64_t count,
                  std::optional<double> then);
  void tell_at(std::int64_t step, const Overflow& overflow);
  void tell_scale();
  void number_pending();

  Timeline& timeline_;
  Contradictions& contradictions_;
  std::uint64_t line_ = 0;           // that is taken
  std::vector<Overflow> pending_;    // whose step is not known yet; the first ones of many
  std::uint64_t pending_count_ = 0;  // all of them
  std::optional<Overflow> last_;     // of them
  std::optional<std::int64_t> iteration_;
  std::int64_t done_ = 0, skipped_ = 0;         // as the last periodic line says
  std::optional<double> scale_, scale_before_;  // as the last line that has one says, and before
  std::int64_t scale_step_ = 0;                 // the first step of scale_
  std::optional<int> rank_, scaler_;
  std::uint64_t of_other_ranks_ = 0, of_other_scalers_ = 0, repeated_ = 0;
  bool any_step_ = false, numbered_ = false, went_back_ = false;
};

}  // namespace halfscope::readers
