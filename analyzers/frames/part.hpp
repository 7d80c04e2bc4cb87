// SPDX-License-Identifier: Apache-2.0
// Parts of a log that are read one by one, possibly on different machines.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_counts.hpp"
#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::frames {

/// A rank of a run, a step of tensor files, or a whole log. A record is a file of counted parts.
struct Part {
  std::string log;  ///< the log that it is a part of
  std::uint64_t index = 0, of = 1;
  std::string name;                          ///< "rank-0003", "step 12"; empty: a whole log
  std::optional<std::string> settings = {};  ///< the options that a record was counted with
  /// Returns the manifest of a run log; empty for other logs.
  std::function<std::optional<log::Manifest>()> manifest = [] {
    return std::optional<log::Manifest>();
  };
  /// Reads this part alone, as for_each_frame does.
  std::function<void(const Visitor&, Notes&, const Progress&)> read;
  /// Reads the part's whole tensors. An empty function: it has none.
  std::function<void(const WholeStepVisitor&, Notes&, const Progress&)> read_whole = {};
  /// Reads what was counted from its whole tensors. An empty function: nothing was.
  std::function<void(const WholeCountsVisitor&)> read_counts = {};
  /// Passes the part's bytes, as stored in a record, piece by piece.
  std::function<void(const std::function<void(std::string_view)>&)> bytes = {};
};
using Parts = std::vector<Part>;

}  // namespace halfscope::analyzers::frames
