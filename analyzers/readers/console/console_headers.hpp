// SPDX-License-Identifier: Apache-2.0
// Steps of lines that have none: a line above them has it.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes a file's lines in order. Scalars of a line without a step get the step or epoch of the
/// header at most 32 lines above it: "Epoch 12", then "train_loss 0.36". A step that may be counted
/// from the beginning of an epoch gets the epoch of the last header, as in Keras's output.
class HeaderSteps {
 public:
  void to_steps(ConsoleLine& line);

 private:
  std::optional<Header> header_;
  std::optional<std::int64_t> epoch_;
  std::uint64_t lines_since_ = 0;
};

}  // namespace halfscope::analyzers::readers::console
