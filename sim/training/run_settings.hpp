// SPDX-License-Identifier: Apache-2.0
// Conversion of a run's settings to and from run.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "halfscope/log/run_log.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::sim::training {

/// Returns PyTorch's names of an optimizer's state tensors, in the order of Parameter::state.
std::vector<std::string_view> state_names(backend::UpdateRule::Kind kind);

/// Returns the folder of a rank's log: the run's folder for a single rank, else rank-NNNN in it.
std::filesystem::path log_folder(const std::filesystem::path& run, const Settings& settings,
                                 int rank);
/// Returns the manifest of an existing run's log, or of its first rank's. Throws log::BadInput.
log::Manifest first_manifest(const std::filesystem::path& run);

/// Returns the manifest that is written to run.json.
log::Manifest manifest_of(const Settings& settings, int rank, const data::Data& data,
                          const backend::Backend& backend,
                          const std::vector<autograd::Parameter*>& trained);

/// Throws log::BadInput if a setting other than `steps` differs from the run's. The message names
/// the first such setting with the run's value and the requested one.
void require_same(const Settings& settings, const log::Manifest& manifest,
                  const std::filesystem::path& folder);

/// Returns all settings but the number of steps as text; it is equal for parts of the same run.
std::string identity_text(const Settings& settings);
/// Compares the result of an identity_text() with these settings. Returns the difference ("it is of
/// a run with ..."), or an empty string if there is none.
std::string other_run(const Settings& settings, const std::string& told);

}  // namespace halfscope::sim::training
