// SPDX-License-Identifier: Apache-2.0
// Histograms with arbitrary buckets, as other tools write them, and their tables with bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/bounded_table.hpp"

namespace halfscope::analyzers::readers::common {

/// Bucket i holds counts[i] values in [edges[i], edges[i + 1]). The last bucket is closed if
/// `last_closed`. Outer edges may be infinite.
struct Histogram {
  std::vector<double> edges;  ///< ascending; one more than counts
  std::vector<double> counts;
  bool last_closed = true;
  std::optional<double> min, max;  ///< extremes of all values; empty if not recorded
  /// Number of all values; empty if not recorded. Values in no bucket are infinite, NaN, or
  /// beyond the outer edges.
  std::optional<double> total;
  bool nonfinite_known = true;  ///< false: the source drops infinities and NaN without a count
  double slack = 0;             ///< the largest distance of a value from its bucket, by rounding
};

/// Returns the table of a histogram. Finite `min` and `max` are values of the tensor, so extremes
/// are exact. A bucket with equal edges holds that one value. `min` and `max` that are NaN or
/// infinite, as NumPy computes them, show which values are in no bucket. Throws
/// std::invalid_argument with the reason: edges that do not ascend, counts that are negative, not
/// whole, or above 2^53 in sum, a total below their sum, or `min` or `max` outside all buckets.
BoundedTable table_of(const Histogram& histogram);

/// Returns true if an occupied bucket is so wide that it is unknown, at all scales from 1 to 2^40,
/// whether FP16 flushes its values: it reaches from zero, or from values flushed at 2^40, to values
/// kept at 1.
bool hides_underflow(const BoundedTable& table);

}  // namespace halfscope::analyzers::readers::common
