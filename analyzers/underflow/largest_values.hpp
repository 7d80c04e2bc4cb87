// SPDX-License-Identifier: Apache-2.0
// The largest values of whole tensors, and their places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::underflow {

/// One finite nonzero value of a tensor.
struct LargeValue {
  double value = 0;                  ///< unscaled
  std::vector<std::uint64_t> place;  ///< its indices, from 0
  int rank = 0;
};

/// Returns the at most `count` values of the largest magnitudes among the selected tensors that the
/// log has whole, largest first. Adds a note if gradients were skipped, as after
/// a scale's collapse. Throws log::BadInput.
std::vector<LargeValue> largest_values(const std::filesystem::path& log,
                                       const frames::Selection& selection, std::size_t count,
                                       frames::Notes& notes);

}  // namespace halfscope::analyzers::underflow
