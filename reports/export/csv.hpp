// SPDX-License-Identifier: Apache-2.0
// Findings as CSV (RFC 4180): one line a tensor and step.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::exports {

/// Columns: log, name, role, source_dtype, step, the counts of `analyze --json`, max_abs. A count
/// known only by bounds is written as low..high.
std::string to_csv(const analyzers::underflow::Analysis& analysis);

/// A name from a log as a field holds it, before its quotes: printable (log/error.hpp), and behind
/// an apostrophe where a spreadsheet would take it for a formula.
std::string csv_name(std::string_view name);

}  // namespace halfscope::reports::exports
