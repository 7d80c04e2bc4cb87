// SPDX-License-Identifier: Apache-2.0
// NaN and infinities, in a log's last recorded steps, that no loss scale explains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

/// The final steps of a log's tensors, each with unexplained NaN or infinities in some tensor.
struct BrokenEnd {
  std::string log;
  std::string tensor;  ///< first tensor, in a step's order, with such values at step `first`
  /// The module or operation that computed `tensor` from finite inputs, by msprobe's names for
  /// both; empty if unknown.
  std::string source = {};
  std::int64_t first = 0, last = 0;
  std::uint64_t steps = 0;  ///< number of recorded steps from first to last; all have such values
  std::uint64_t other_tensors = 0;  ///< number of other tensors with such values
  bool nan = false, inf = false;
};

/// Returns the broken end of a log; empty if its last step has no unexplained values. Unexplained
/// are: in steps that were not skipped, NaN at a loss scale of 1 or an unknown one, and infinities
/// of values computed in a wider format than FP16, which such a scale cannot cause. BF16 values are
/// unexplained at any scale, since no scale in use comes near BF16's limit.
std::optional<BrokenEnd> broken_end(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::overflow
