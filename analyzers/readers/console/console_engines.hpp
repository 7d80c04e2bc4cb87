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
  std::array<std::uint64_t, kEngines> turn_{};         // of its last message
  std::uint64_t turns_ = 0, returns_ = 0;
  std::size_t last_ = 0;
  std::optional<std::int64_t> step_;  // of the last counter
  std::size_t place_ = 0;             // of it, among those of its step
};

/// Whether messages of one rank stand in pairs: one engine comes to a scale again only after it
/// grew.
class PairedMessages {
 public:
  void take(const Overflow& overflow);
  /// A line of something else.
  void other() { before_.reset(); }
  /// At two scales and more.
  bool found() const { return scales_.size() >= 2; }

 private:
  std::optional<int> rank_;  // the first to print
  std::optional<Overflow> before_;
  std::set<double> scales_;  // attempted, of pairs; two at most
};

/// Whether a log has two engines, as far as its lines show.
class EngineSurvey {
 public:
  void take(const Overflow& overflow);
  void take(const Periodic& counter, std::optional<double> learning_rate);

  /// Twice and more two counters of one step differ, or messages continue two scales in turn.
  bool two() const;
  /// Whether the engine whose message came first is the one whose counter comes second.
  bool swapped() const;

 private:
  EngineSplit split_;
  std::optional<Periodic> before_;
  std::optional<double> rate_before_;
  std::optional<double> single_;  // the scale, were there one engine
  std::uint64_t differ_ = 0, impossible_ = 0;
  std::array<std::int64_t, kEngines> skipped_{};  // by the counter of each
  /// Messages of each scale since each engine's counter, and how far these were from the counters.
  std::array<std::array<std::int64_t, kEngines>, kEngines> since_{}, off_{};
};

}  // namespace halfscope::analyzers::readers::console
