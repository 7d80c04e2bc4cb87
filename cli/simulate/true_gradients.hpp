// SPDX-License-Identifier: Apache-2.0
// A run's gradients against those in binary64.
#pragma once

#include <filesystem>

#include "reports/answer/section.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

/// A row for weight gradients and one for activation gradients; empty where no step was compared.
reports::answer::Section true_gradients_section(const sim::training::Settings& settings,
                                                const std::filesystem::path& run);

}  // namespace halfscope::cli::simulate
