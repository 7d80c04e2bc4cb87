// SPDX-License-Identifier: Apache-2.0
// The parts of the probe. Each one prints a line for what it finds, lines "fact: NAME = VALUE" for
// the summary, and leaves its files in the folder. They throw where CUDA or a file fails.
#pragma once

#include <filesystem>

namespace probe {

/// Each returns whether all is as the model says.
bool run_mma(const std::filesystem::path& folder);
bool run_chains(const std::filesystem::path& folder);
bool run_tables(const std::filesystem::path& folder);
bool run_gemm(const std::filesystem::path& folder);
bool run_wgmma(const std::filesystem::path& folder);     ///< with its chains
bool run_bfloat16(const std::filesystem::path& folder);  ///< mma.sync, wgmma and its chains
bool run_fp8(const std::filesystem::path& folder);       ///< the same

}  // namespace probe
