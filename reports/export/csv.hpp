// SPDX-License-Identifier: Apache-2.0
// Findings as CSV (RFC 4180): one line per tensor and step.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::exports {

/// Returns columns log, name, role, source_dtype, step, the counts of `analyze --json`, and
/// max_abs. If only bounds of a count are known, it is written as low..high.
std::string to_csv(const analyzers::underflow::Analysis& analysis);

/// Returns a log's name as the content of a field, before quoting: printable (log/error.hpp), and
/// with an apostrophe before it if a spreadsheet would read it as a formula.
std::string csv_name(std::string_view name);

}  // namespace halfscope::reports::exports
