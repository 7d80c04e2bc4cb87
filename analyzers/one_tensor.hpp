// SPDX-License-Identifier: Apache-2.0
// One tensor at one step: what `halfscope explain RUN` shows beside the run's study.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// One finite value of a whole tensor.
struct LargeValue {
  double value = 0;                  ///< unscaled
  std::vector<std::uint64_t> place;  ///< its indices, from 0
  int rank = 0;
};

struct OneTensor {
  underflow::TensorFindings tensor;  ///< of the step alone, at loss scale 1
  underflow::Target target;
  /// log2 of the largest power of two at which no finite value overflows; empty if there is none.
  std::optional<int> safe_log2;
  std::vector<LargeValue> largest;  ///< largest magnitude first; empty without whole tensors
};

/// Reads one tensor at one step, both selected by `selection`, and its at most `count` largest
/// values if the log has the whole tensor. Throws log::BadInput, also if the log has no such
/// tensor.
OneTensor one_tensor(const std::filesystem::path& log, const underflow::Target& target,
                     const frames::Selection& selection, std::size_t count);

}  // namespace halfscope::analyzers
