// SPDX-License-Identifier: Apache-2.0
// The rows of a Weights & Biases history in JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/histogram.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::wandb {

/// What was logged at one step. Names of nested values are joined by dots, as W&B does.
struct HistoryRow {
  std::optional<std::int64_t> step;  ///< "_step"
  std::string odd_step;              ///< what stands there and is not a whole number
  std::uint64_t line = 0;            ///< of a file with one row a line, from 1
  std::vector<std::pair<std::string, double>> scalars;
  /// Edges and counts alone, not checked.
  std::vector<std::pair<std::string, common::Histogram>> histograms;
};

/// A file of one object a line, or one array of objects, or one object, as the Python module json
/// writes them: NaN and Infinity are numbers, and so are strings of these words. Of other values
/// nothing is kept, however deep they are. Holds one row at a time. Throws log::BadInput where the
/// file cannot be read; what is not JSON goes to `bad`, and of an array all that follows it.
void for_each_history_row(const log::OpenPath& file, const std::function<void(HistoryRow&&)>& visit,
                          common::BadLines& bad, const frames::Progress& progress,
                          std::uint64_t before, std::uint64_t in_all);

}  // namespace halfscope::analyzers::readers::wandb
