// SPDX-License-Identifier: Apache-2.0
// Findings as CSV (RFC 4180): one line a tensor and step.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::exports {

/// Columns: log, name, role, source_dtype, step, the counts of `analyze --json`, max_abs. A count
/// known only by bounds is written as low..high. Control characters in names are escaped.
std::string to_csv(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::exports
