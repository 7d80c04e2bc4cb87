// SPDX-License-Identifier: Apache-2.0
// Comparison of a run's gradients with the true ones, computed in binary64.
#pragma once

#include <filesystem>

#include "reports/answer/section.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

/// Returns a section with one row for weight gradients and one for activation gradients; an empty
/// section if no step was compared.
reports::answer::Section true_gradients_section(const sim::training::Settings& settings,
                                                const std::filesystem::path& run);

}  // namespace halfscope::cli::simulate
