// SPDX-License-Identifier: Apache-2.0
// A share of values whose counts may be known only as bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {

/// The share `count` / `of` of finite nonzero values. Intervals, if zeros may be flushed values.
struct Share {
  Interval count, of;
  /// Number of kept values, if buckets hide whether values are zero, flushed or kept. If empty,
  /// each value that may be flushed counts in both numbers above or in neither.
  std::optional<Interval> kept = {};
  /// An exact share; 0 of 0 has the value 0.
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
