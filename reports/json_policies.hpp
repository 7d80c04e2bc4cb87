// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies, as JSON. Fields: docs/json.md.
#pragma once

#include <nlohmann/json.hpp>

#include "analyzers/policy_study.hpp"

namespace halfscope::reports {

/// One entry of `policies --json`. Whole series: as many numbers as there are steps.
nlohmann::ordered_json trace_json(const analyzers::Trace& trace,
                                  const analyzers::PolicyStudy& study);

/// Every policy with defaults and source: `policies --list --json`.
nlohmann::ordered_json catalogue_json();

}  // namespace halfscope::reports
