// SPDX-License-Identifier: Apache-2.0
// Histograms and scalars as rows of a database.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"

namespace halfscope::analyzers::count {

/// One tensor at one step of one part, as recorded.
struct TensorRow {
  std::string name;
  std::string_view role;
  std::string_view dtype;  ///< empty: not known
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::uint64_t total = 0;
  Interval zero, nan, inf;
};

/// Its values of one binade, or between two magnitudes where no more is known.
struct BinadeRow {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::int64_t exponent = kNone;  ///< magnitudes in [2^e, 2^(e+1))
  double low = 0;                 ///< no magnitude is smaller
  double high = 0;                ///< none is larger; infinity where nothing bounds it
  std::uint64_t count = 0;
  std::int64_t negative = kNone;  ///< how many are
  std::size_t tensor = 0;         ///< whose row, from 0
};

/// One scalar at one step, by its name in the log: docs/run-log.md. found_inf: 0 or 1.
struct ScalarRow {
  std::string name;
  std::int64_t step = 0;
  double value = 0;
};

struct PartRows {
  std::vector<TensorRow> tensors;
  std::vector<BinadeRow> binades;
  std::vector<ScalarRow> scalars;
};

/// The rows of a part, in its order. Throws log::BadInput.
PartRows rows_of(const frames::Part& part, frames::Notes& notes, const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
