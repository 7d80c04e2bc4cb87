// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies, as JSON. Fields: docs/json.md.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "analyzers/policy_study.hpp"

namespace halfscope::reports {

using WriteText = std::function<void(std::string_view)>;

/// The array of `policies --json`, handed on piece by piece: as many numbers a policy as there are
/// steps. With what the runs themselves did, where that is wanted and known.
void write_traces(const std::vector<analyzers::PolicyStudy>& studies, bool with_recorded,
                  const WriteText& write);

/// Every policy with defaults and source: `policies --list --json`.
nlohmann::ordered_json catalogue_json();

}  // namespace halfscope::reports
