// SPDX-License-Identifier: Apache-2.0
// A share of values, where counts may be known between bounds alone.
#pragma once

#include <cstdint>
#include <optional>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {

/// count of `of` finite nonzero values; intervals where zeros may be flushed values.
struct Share {
  Interval count, of;
  /// Where a log's buckets leave open whether values are zero, flushed or kept: how many are kept.
  /// Without, values that are perhaps flushed count in both numbers above or in neither.
  std::optional<Interval> kept = {};
  /// A share, exactly; of no values 0 of 0.
  struct Quotient {
    std::uint64_t part = 0, of = 0;
    double value() const {
      return of == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(of);
    }
  };
  Quotient least() const;
  Quotient most() const;
  double low() const { return least().value(); }
  double high() const { return most().value(); }
};

}  // namespace halfscope::analyzers::underflow
