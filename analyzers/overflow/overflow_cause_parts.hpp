// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files that judge causes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/overflow/overflow_cause.hpp"

namespace halfscope::analyzers::overflow {

/// The first marked values of a run.
struct First {
  const underflow::TensorFindings* tensor = nullptr;  ///< null: only scalars show the values
  log::Role role = log::Role::unknown;
  std::int64_t at = 0;
  bool nan = false, inf = false;
  std::string held;            ///< "3 infinities and 1 NaN"
  std::optional<bool> narrow;  ///< computed in binary16's range or less; empty: unknown
};

/// Returns the judgement of values whose type is not recorded.
Judgement not_recorded_dtype(const First& first);

/// Judges gradients that became non-finite first; overflow_cause_gradients.cpp.
Judgement judge_gradient(const LogView& view, const Run& run, const First& first);

}  // namespace halfscope::analyzers::overflow
