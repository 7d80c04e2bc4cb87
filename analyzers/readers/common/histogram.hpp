// SPDX-License-Identifier: Apache-2.0
// A histogram with any buckets, as other tools write them, as a table with bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/bounded_table.hpp"

namespace halfscope::analyzers::readers::common {

/// Bucket i holds counts[i] values in [edges[i], edges[i + 1]); the last one is closed where
/// `last_closed`. Ends may be infinite.
struct Histogram {
  std::vector<double> edges;  ///< ascending; one more than counts
  std::vector<double> counts;
  bool last_closed = true;
  std::optional<double> min, max;  ///< of all values; NaN and infinity where the source has them
  /// All values, where the source says; those the buckets leave out are infinite, NaN, or beyond
  /// the outer edges.
  std::optional<double> total;
  bool nonfinite_known = true;  ///< false: the source drops infinities and NaN without a count
  double slack = 0;  ///< how far beyond its bucket a value may lie where the source rounds
};

/// Finite `min` and `max` are values that are there, so that extremes are exact. Equal edges hold
/// that one value. Of values that the buckets leave out, `min` and `max` say more where they go
/// through NaN and infinity as NumPy's do. Throws std::invalid_argument saying what is wrong: edges
/// that do not ascend, counts that are negative, no whole numbers, or above 2^53 in sum, a total
/// below their sum, a `min` or `max` that no bucket can hold.
BoundedTable table_of(const Histogram& histogram);

/// Whether some bucket that is occupied is so wide that of its values nobody can tell whether FP16
/// flushes them at a scale from 1 to 2^40: it reaches from zero, or from what is flushed at 2^40,
/// to what is kept at 1.
bool hides_underflow(const BoundedTable& table);

}  // namespace halfscope::analyzers::readers::common
