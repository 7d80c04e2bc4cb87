// SPDX-License-Identifier: Apache-2.0
// The analyzers together: what the command line, the report and Python ask for.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers {

/// What is to be found in whole tensors, beyond what the tables tell. Each reads them once more.
struct Passes {
  bool updates = false;  ///< what becomes of weight updates; add_updates()
  bool what_if = false;  ///< and in other arithmetic
  bool formats = false;  ///< every format; add_fits()
  bool sums = false;     ///< lost mass alone; add_sums()
};

/// Told what is read next, gives whom to tell how far it has come. May be empty.
using Phases = std::function<frames::Progress(const std::string& what)>;

/// analyze(), and the passes that are asked for. Where nobody asked for a format (Target::
/// by_default), a run in bfloat16 is read again and judged in bfloat16. series: set where it is not
/// null; of binary16 alone, and where no tensors are selected by name. Throws log::BadInput.
underflow::Analysis analyze(const std::vector<std::filesystem::path>& logs,
                            const underflow::Target& target, const frames::Selection& selection,
                            const Passes& passes, const Phases& phases,
                            replay::LogSeries* series = nullptr);

/// Everything that is found in logs: what a report shows.
struct Study {
  underflow::Analysis analysis;
  overflow::OverflowFindings overflow;
  recommend::Recommendation advice;  ///< complete
  replay::LogSeries series = {};     ///< until add_policies() takes them
  std::vector<replay::PolicyStudy> policies =
      {};  ///< of the logs that can be replayed; add_policies()
  /// Log and reason of run logs that cannot be.
  std::vector<std::pair<std::string, std::string>> not_replayed = {};
};

/// What follows from an analysis. The logs are read again where they are of several ranks. Throws
/// log::BadInput.
Study study(underflow::Analysis&& analysis, const frames::Selection& selection,
            const underflow::RecommendOptions& options, replay::LogSeries&& series = {});

/// Replays the policies over Study::series, which it takes. A log with gaps, or of one step, is
/// not replayed.
void add_policies(Study& study, const replay::PolicyOptions& options);

}  // namespace halfscope::analyzers
