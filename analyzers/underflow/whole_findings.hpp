// SPDX-License-Identifier: Apache-2.0
// What formats::WholePass finds of one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/underflow/fit_findings.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope::analyzers::underflow {

struct WholeFindings {
  /// NaN and infinities of a gradient at steps that the log says were skipped: the scale made them,
  /// no format is judged by them.
  std::uint64_t skipped_nan = 0, skipped_inf = 0;
  /// The same questions for every format.
  std::vector<FormatFit> fits;
  std::optional<Narrowest> narrowest;
  /// Of its mass, without a loss scale, and at Analysis::loss_scale where that is a power of two.
  std::optional<MassShare> lost_at_1, lost;
  std::vector<BlockFit> block_fits;       ///< MX formats, where whole tensors are in the log
  std::vector<std::int64_t> whole_steps;  ///< whose whole tensors the exact noise is of; ascending
};

}  // namespace halfscope::analyzers::underflow
