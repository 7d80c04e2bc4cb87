// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies, as JSON. Fields: docs/json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "reports/export/json.hpp"

namespace halfscope::reports::exports {

struct TracesOptions {
  bool with_recorded = false;  ///< also what the runs themselves did, where that is known
  std::string framework = {};  ///< whose lines to paste, as --framework has it; may be empty
};

/// The array of `policies --json`, handed on piece by piece: as many numbers a policy as there
/// are steps.
void write_traces(const std::vector<analyzers::replay::PolicyStudy>& studies,
                  const TracesOptions& options, const WriteText& write);

/// The same as values, one by one: Python's policies().
void each_trace(const std::vector<analyzers::replay::PolicyStudy>& studies,
                const TracesOptions& options, const TakeJson& take);

/// Every policy with defaults and source: `policies --list --json`.
nlohmann::ordered_json catalogue_json();

}  // namespace halfscope::reports::exports
