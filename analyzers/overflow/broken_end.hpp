// SPDX-License-Identifier: Apache-2.0
// NaN and infinities that no loss scale explains, in a log's last recorded steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

/// The last steps that a log has of its tensors, each with such values in some tensor.
struct BrokenEnd {
  std::string log;
  std::string tensor;  ///< of those at `first` the one that comes first within a step
  /// The module or operation that made `tensor` of finite inputs, as msprobe names both; empty
  /// where that is not known.
  std::string source = {};
  std::int64_t first = 0, last = 0;
  std::uint64_t steps = 0;  ///< recorded ones from first to last: all of them
  std::uint64_t also = 0;   ///< other tensors
  bool nan = false, inf = false;
};

/// Of a log of which that holds; the last step alone is one. Not explained: at a step that was
/// not skipped, NaN of a loss scale of 1 or an unknown one; and infinities there of values computed
/// in a format that is wider than FP16, which an unknown scale does not reach. In BF16, which no
/// scale in use brings near its end, both at any scale.
std::optional<BrokenEnd> broken_end(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::overflow
