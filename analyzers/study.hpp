// SPDX-License-Identifier: Apache-2.0
// Everything the analyzers find in logs: what a report shows.
#pragma once

#include <filesystem>
#include <vector>

#include "analyzers/overflow.hpp"
#include "analyzers/recommend.hpp"
#include "analyzers/underflow.hpp"

namespace halfscope::analyzers {

struct Study {
  Analysis analysis;  ///< with updates, what-ifs and fits
  OverflowFindings overflow;
  Recommendation advice;  ///< complete
};

/// Throws log::BadInput.
Study study(const std::vector<std::filesystem::path>& logs, const Target& target,
            const Selection& selection, const RecommendOptions& options,
            const Progress& progress = {});

}  // namespace halfscope::analyzers
