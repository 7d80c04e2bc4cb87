// SPDX-License-Identifier: Apache-2.0
// A share of values, where counts may be known between bounds alone.
#pragma once

#include <optional>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {

/// count of `of` finite nonzero values; intervals where zeros may be flushed values.
struct Share {
  Interval count, of;
  /// Where a log's buckets leave open whether values are zero, flushed or kept: how many are kept.
  /// Without, values that are perhaps flushed count in both numbers above or in neither.
  std::optional<Interval> kept = {};
  double low() const;   ///< smallest share; 0 when there are no values
  double high() const;  ///< largest share
};

}  // namespace halfscope::analyzers::underflow
