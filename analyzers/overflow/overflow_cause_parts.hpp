// SPDX-License-Identifier: Apache-2.0
// What the judgements of causes share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/overflow/overflow_cause.hpp"

namespace halfscope::analyzers::overflow {

/// The first marked values: what they are and hold.
struct First {
  const underflow::TensorFindings* tensor = nullptr;  ///< null: known by scalars alone
  log::Role role = log::Role::unknown;
  std::int64_t at = 0;
  bool nan = false, inf = false;
  std::string held;            ///< "3 infinities and 1 NaN"
  std::optional<bool> narrow;  ///< computed in a format of binary16's range; empty: not known
};

/// Of values whose format is not recorded.
Judgement not_recorded_dtype(const First& first);

/// Of gradients that are the first to fail; overflow_cause_gradients.cpp.
Judgement judge_gradient(const LogView& view, const Run& run, const First& first);

}  // namespace halfscope::analyzers::overflow
