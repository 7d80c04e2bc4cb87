// SPDX-License-Identifier: Apache-2.0
// Parts of a log that are read one by one, each perhaps on a machine of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::frames {

/// What is known of a part before its frames are read.
struct PartFacts {
  std::optional<log::Manifest> manifest = {};  ///< of a run log
  std::uint64_t whole_steps = 0;               ///< steps of which the log has whole tensors
};

/// A rank of a run, a step of tensor files, or a whole log.
struct Part {
  std::string log;  ///< what it is a part of
  std::uint64_t index = 0, of = 1;
  std::string name;  ///< "rank-0003", "step 12"; empty: the log itself
  std::function<PartFacts()> facts;
  /// As for_each_frame, of this part alone.
  std::function<void(const Visitor&, Notes&, const Progress&)> read;
};
using Parts = std::vector<Part>;

}  // namespace halfscope::analyzers::frames
