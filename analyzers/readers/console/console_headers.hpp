// SPDX-License-Identifier: Apache-2.0
// Steps of lines that have none: a line above them has it.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes a file's lines in order. Scalars of a line without a step get the step or epoch of the
/// header at most 32 lines above it: "Epoch 12", then "train_loss 0.36". A step that may be counted
/// from the beginning of an epoch gets the epoch of the last header, as in Keras's output; without
/// headers an epoch ends where a step falls back after nine tenths of its total: "[390/391]".
class HeaderSteps {
 public:
  void to_steps(ConsoleLine& line);

 private:
  void count_epoch(Periodic& periodic);

  std::optional<Header> header_;
  std::optional<std::int64_t> epoch_;
  std::uint64_t lines_since_ = 0;
  std::optional<std::size_t> form_;     // of the last step without an epoch
  std::int64_t step_ = 0, epochs_ = 0;  // that step, and how often steps began anew
};

}  // namespace halfscope::analyzers::readers::console
