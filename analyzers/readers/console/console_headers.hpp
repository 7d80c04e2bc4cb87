// SPDX-License-Identifier: Apache-2.0
// Steps of lines that have none, and epochs of steps that begin anew, from the lines around them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Completes the lines of a file, in order.
/// * Scalars of a line without a step get the step or epoch of the last line that has one and no
///   loss: "Epoch 12", then "train_loss 0.36".
/// * A step that may be counted from the beginning of an epoch gets the epoch of the last header,
///   as in Keras's output. Without headers, an epoch ends where a step falls back after nine tenths
///   of its total ("[390/391]"), or to the first step.
/// * Lines behind a header that says validation are an evaluation's if their steps fall back, until
///   these fall back again.
class HeaderSteps {
 public:
  void to_steps(ConsoleLine& line);

 private:
  /// Steps of the lines of one form, and how often they began anew.
  struct Counter {
    std::int64_t first = 0, last = 0, epochs = 0;
  };

  bool is_of_evaluation(std::int64_t step, const Counter& counter);
  std::int64_t epoch_of(const Periodic& periodic, Counter& counter) const;

  std::optional<Periodic> above_;  // the last line with a step and no loss
  std::optional<std::int64_t> epoch_;
  bool evaluating_ = false;
  std::optional<std::int64_t> evaluated_;  // the last step of the evaluation
  std::map<std::size_t, Counter> counters_;
};

}  // namespace halfscope::analyzers::readers::console
