// SPDX-License-Identifier: Apache-2.0
// Parts of a log that are read one by one, each perhaps on a machine of its own.
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

/// A rank of a run, a step of tensor files, or a whole log.
struct Part {
  std::string log;  ///< what it is a part of
  std::uint64_t index = 0, of = 1;
  std::string name;                          ///< "rank-0003", "step 12"; empty: the log itself
  std::optional<std::string> settings = {};  ///< of a record: the options it was counted with
  /// Of a run log.
  std::function<std::optional<log::Manifest>()> manifest = [] {
    return std::optional<log::Manifest>();
  };
  /// As for_each_frame, of this part alone.
  std::function<void(const Visitor&, Notes&, const Progress&)> read;
  /// Its whole tensors; empty: it has none.
  std::function<void(const WholeStepVisitor&, Notes&, const Progress&)> read_whole = {};
  /// What has been counted of them; empty: nothing.
  std::function<void(const WholeCountsVisitor&)> read_counts = {};
  /// Of a record: the part as it lies there, piece by piece.
  std::function<void(const std::function<void(std::string_view)>&)> bytes = {};
};
using Parts = std::vector<Part>;

}  // namespace halfscope::analyzers::frames
