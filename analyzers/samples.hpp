// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, for analyzers that must see values: sampled steps of a run log, or a
// tensor file.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/source.hpp"

namespace halfscope::analyzers {

/// One whole tensor at one step, as recorded.
struct WholeTensor {
  std::string name;
  log::Role role = log::Role::unknown;
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::vector<std::uint64_t> shape;
  TensorView view;  ///< valid during the call
};
using WholeVisitor = std::function<void(const WholeTensor&)>;

/// Calls `visit` for every selected whole tensor of one log, step by step; of a log of several
/// ranks, every rank's where the role is sharded, rank 0's where not. Holds one tensor at a time.
/// Throws log::BadInput.
void for_each_whole_tensor(const std::filesystem::path& log, const Selection& selection,
                           const WholeVisitor& visit, Notes& notes, const Progress& progress = {});

}  // namespace halfscope::analyzers
