// SPDX-License-Identifier: Apache-2.0
// Results of formats::WholePass for one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/underflow/fit_findings.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope::analyzers::underflow {

struct WholeFindings {
  /// NaN and infinities of a gradient at steps that the log marks as skipped. The scale caused
  /// them, so they do not count against any format.
  std::uint64_t skipped_nan = 0, skipped_inf = 0;
  /// Fits to each of formats::kFitFormats.
  std::vector<FormatFit> fits;
  std::optional<Narrowest> narrowest;
  /// Flushed mass without a loss scale, and at Analysis::loss_scale if that is a power of two.
  std::optional<MassShare> lost_at_1, lost;
  std::vector<BlockFit> block_fits;       ///< MX formats, if the log has whole tensors
  std::vector<std::int64_t> whole_steps;  ///< steps with exact noise from whole tensors; ascending
};

}  // namespace halfscope::analyzers::underflow
