// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies as JSON. The fields are in docs/json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "reports/export/json.hpp"

namespace halfscope::reports::exports {

struct TracesOptions {
  bool with_recorded = false;  ///< adds the runs' own scales, if they are known
  std::string framework = {};  ///< --framework as typed; empty: no choice
};

/// Writes the array of `policies --json` in pieces: each policy has one number per step.
void write_traces(const std::vector<analyzers::replay::PolicyStudy>& studies,
                  const TracesOptions& options, const WriteText& write);

/// Calls `take` with each element of the same array, for Python's policies().
void each_trace(const std::vector<analyzers::replay::PolicyStudy>& studies,
                const TracesOptions& options, const TakeJson& take);

/// Returns all policies with their defaults and sources: `policies --list --json`.
nlohmann::ordered_json catalogue_json();

}  // namespace halfscope::reports::exports
