// SPDX-License-Identifier: Apache-2.0
// A run's settings as run.json has them, and back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "halfscope/log/run_log.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::sim::training {

/// PyTorch's keys of an optimizer's state, in the order of Parameter::state.
std::vector<std::string_view> state_names(backend::UpdateRule::Kind kind);

/// Where a rank's log lies: in the run's folder where it is the only one, else in rank-NNNN.
std::filesystem::path log_folder(const std::filesystem::path& run, const Settings& settings,
                                 int rank);
/// Of a run that is there: of its log, or its first rank's. Throws log::BadInput.
log::Manifest first_manifest(const std::filesystem::path& run);

/// What run.json says of a run.
log::Manifest manifest_of(const Settings& settings, int rank, const data::Data& data,
                          const backend::Backend& backend,
                          const std::vector<autograd::Parameter*>& trained);

/// Throws log::BadInput naming the first setting that is another than the run's, what the run has
/// and what was asked for. `steps` may differ.
void require_same(const Settings& settings, const log::Manifest& manifest,
                  const std::filesystem::path& folder);

/// What makes a run another one where it differs: all settings but its length.
std::string identity_text(const Settings& settings);
/// How a run of which identity_text() told this differs from one with these settings: "it is of a
/// run with ..."; empty where it does not.
std::string other_run(const Settings& settings, const std::string& told);

}  // namespace halfscope::sim::training
