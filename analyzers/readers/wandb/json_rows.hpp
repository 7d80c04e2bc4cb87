// SPDX-License-Identifier: Apache-2.0
// Rows of scalars and histograms in JSON: histories of Weights & Biases and of Hugging Face's
// Trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/histogram.hpp"

namespace halfscope::analyzers::readers::wandb {

/// What was logged at one step. Names of nested values are joined by dots, as W&B does.
struct JsonRow {
  std::optional<std::int64_t> step;
  std::string odd_step;    ///< what stands there and is not a whole number
  double around_step = 0;  ///< of the object around all rows, so far as it is read
  std::vector<std::pair<std::string, double>> scalars;
  /// Edges and counts alone, not checked.
  std::vector<std::pair<std::string, common::Histogram>> histograms;

  /// The first scalar of that name.
  std::optional<double> scalar(std::string_view name) const;
};

/// Where rows are in a text.
struct RowLayout {
  std::string_view step;              ///< the key of a row's step
  std::string_view list = {};         ///< the key of the array of rows in the object around them;
                                      ///< empty: the text is such an array, or one row
  std::string_view around_step = {};  ///< the key of JsonRow::around_step
};

/// Hands on the rows of one JSON text, one at a time, until `visit` returns false. NaN and Infinity
/// are numbers, and so are strings of numbers and of these words. Of other values nothing is kept,
/// however deep they are; of a row in an object, nothing that is nested. Returns what is wrong with
/// the text; empty where nothing is.
std::string read_json_rows(std::string_view text, const RowLayout& layout,
                           const std::function<bool(JsonRow&& row)>& visit);

}  // namespace halfscope::analyzers::readers::wandb
