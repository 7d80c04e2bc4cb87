// SPDX-License-Identifier: Apache-2.0
// What training programs print of loss scales and skipped steps, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace halfscope::readers {

/// A step that was skipped. Scales that can be none are left out.
struct Overflow {
  std::optional<double> attempted;  ///< the scale it was tried at
  std::optional<double> next;       ///< what the scale is from then on
  std::optional<int> rank;          ///< who says so
  int scaler = 0;                   ///< Apex: which of several
};

/// "Grad overflow on iteration N", from 0, printed just before the line of the overflow itself.
struct OverflowIteration {
  std::int64_t iteration = 0;
};

/// So many steps are done. `skipped` of all of them, or, `of_interval`, of those since the last
/// such line. The scale is the one of the next step.
struct Periodic {
  std::int64_t steps = 0;
  std::optional<std::int64_t> skipped;
  bool of_interval = false;
  std::optional<double> loss_scale, loss, learning_rate;
};

struct ConsoleLine {
  std::optional<Overflow> overflow;
  std::optional<OverflowIteration> iteration;
  std::optional<Periodic> periodic;
  std::optional<double> odd_scale;  ///< what stands for a scale and is none, or 0
  bool any() const { return overflow || iteration || periodic; }
};

/// What one line says; nothing for most.
ConsoleLine console_line(std::string_view line);

/// The parts of a line that have a message of an overflow each, as where several processes write
/// into one log; the line itself where it has one or none.
std::vector<std::string_view> messages_in(std::string_view line);

}  // namespace halfscope::readers
