// SPDX-License-Identifier: Apache-2.0
// Two engines that print into one log, such as the actor and the critic of reinforcement learning:
// which of them a line is of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

inline constexpr std::size_t kEngines = 2;

/// Takes lines in order, and gives each to one of two engines: a message of an overflow to the one
/// whose scale it continues, a counter by its place among those of one step.
class EngineSplit {
 public:
  std::size_t of(const Overflow& overflow);
  std::size_t of(const Periodic& counter);

  /// Messages that continue the other scale than the one before did, where the two differ.
  std::uint64_t returns() const { return returns_; }

 private:
  std::optional<std::size_t> fitting(double attempted) const;

  std::array<std::optional<double>, kEngines> scale_;  // that the next message is tried at
  std::uint64_t returns_ = 0;
  std::size_t last_ = 0;
  std::optional<std::int64_t> step_;  // of the last counter
  std::size_t place_ = 0;             // of it, among those of its step
};

/// Whether a log has two engines, as far as its lines show.
class EngineSurvey {
 public:
  void take(const Overflow& overflow);
  void take(const Periodic& counter, std::optional<double> learning_rate);
  /// A line of something else than a message.
  void other() { pair_.reset(); }

  /// Twice and more two counters of one step differ, or messages continue two scales in turn.
  bool two() const;
  /// Whether the engine whose message came first is the one whose counter comes second.
  bool swapped() const;
  /// Whether equal messages of one rank follow each other, at two scales and more: one engine comes
  /// to a scale again only after it grew.
  bool paired() const { return pairs_.size() >= 2; }

 private:
  EngineSplit split_;
  std::optional<Periodic> before_;
  std::optional<double> rate_before_;
  std::optional<double> single_;  // the scale, were there one engine
  std::uint64_t differ_ = 0, impossible_ = 0;
  std::array<std::int64_t, kEngines> skipped_{};  // by the counter of each
  /// Messages of each scale since each engine's counter, and how far these were from the counters.
  std::array<std::array<std::int64_t, kEngines>, kEngines> since_{}, off_{};
  std::optional<int> rank_;       // the first to print
  std::optional<Overflow> pair_;  // its last message, if no other line stands behind it
  std::set<double> pairs_;        // scales of its pairs; two at most
};

}  // namespace halfscope::analyzers::readers::console
