// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/shares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

double share(std::uint64_t part, std::uint64_t rest) {
  return part == 0 ? 0 : static_cast<double>(part) / static_cast<double>(part + rest);
}

/// Returns a - b, or 0 if b is larger.
std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); }

}  // namespace

Bounds class_share(const Classes& classes, Interval Classes::*part, const Interval& of) {
  Interval others;
  for (Interval Classes::*each :
       {&Classes::flushed_to_zero, &Classes::subnormal, &Classes::normal, &Classes::overflow}) {
    if (each != part) others += classes.*each;
  }
  const Interval& in = classes.*part;
  const std::uint64_t fewest = std::max(others.low, less(of.low, in.high));
  const std::uint64_t most = std::min(others.high, less(of.high, in.low));
  return {share(in.low, most), share(in.high, fewest)};
}

std::string class_share_text(const Classes& classes, Interval Classes::*part, const Interval& of) {
  const Interval& count = classes.*part;
  if (of.exact()) return share_text(count, of.low);
  const Bounds share = class_share(classes, part, of);
  return share_range_text(share.low, share.high);
}

std::string largest_text(const analyzers::underflow::TensorFindings& tensor) {
  if (!tensor.max_abs && !tensor.max_abs_at_least) return "none";
  if (!tensor.max_abs) return "at least " + magnitude_text(*tensor.max_abs_at_least);
  const std::string most = magnitude_text(*tensor.max_abs);
  if (!tensor.max_abs_at_least) return most;
  const std::string least = magnitude_text(*tensor.max_abs_at_least);
  return least == most ? most : fmt::format("{:.3g} to {}", *tensor.max_abs_at_least, most);
}

Interval nonfinite_values(const analyzers::underflow::TensorFindings& tensor) {
  const std::uint64_t surely = tensor.counts.nan.low + tensor.counts.inf.low;
  std::uint64_t perhaps = 0;
  for (const analyzers::underflow::ScaledTable& scaled : tensor.tables) {
    for (const Span& span : scaled.table.spans()) perhaps += span.last ? 0 : span.count;
  }
  return {surely, surely + perhaps};
}

Bounds flushed_share(const analyzers::underflow::Counts& counts) {
  return class_share(counts.classes, &Classes::flushed_to_zero, counts.finite_nonzero);
}

}  // namespace halfscope::reports::answer
