// SPDX-License-Identifier: Apache-2.0
// How many processes print each message of a skipped step into one log, where none says which it
// is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes the messages of a log in order. Ranks reduce their scale to the same at the same step:
/// their messages are equal and follow each other. A rank of its own prints equal messages only
/// where the scale grew between them, or is at its minimum: runs of different messages tell ranks.
class RankRuns {
 public:
  void take(const Overflow& overflow);
  /// A line of something else, which ends what was printed at one time.
  void other() { adjacent_ = false; }
  /// After the last line.
  frames::PrintingRanks found();
  /// Whether that number is told by most runs, and lines of the others were torn or lost.
  bool some_torn() const { return some_torn_; }
  /// Returns true if the number is uncertain and all runs with nothing between are of one length:
  /// each of them is of another step.
  bool by_bursts() const { return by_bursts_; }

 private:
  using Lengths = std::map<std::uint64_t, std::uint64_t>;  // of runs, and how often
  /// What a message reduces the scale from and to; -1: it does not say.
  using Scales = std::pair<double, double>;
  static constexpr std::size_t kMostScales = 10'000;

  static void add(Lengths& lengths, std::uint64_t& length);
  void end_burst();
  Lengths usual_lengths() const;
  std::uint64_t torn_length() const;
  std::uint64_t longest_run() const;
  bool mixed() const;

  std::optional<Overflow> last_, before_;  // before_: the last one that differs from last_
  bool adjacent_ = false, some_torn_ = false, by_bursts_ = false;
  std::uint64_t run_ = 0, burst_ = 0;  // equal messages so far: any, and with nothing between
  std::uint64_t returns_ = 0;          // messages equal to before_, with nothing between
  Lengths runs_;
  std::map<Scales, Lengths> bursts_;  // by message
};

}  // namespace halfscope::analyzers::readers::console
