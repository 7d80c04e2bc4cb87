// SPDX-License-Identifier: Apache-2.0
// Layout in a terminal: the answer of `halfscope recommend`, the facts that a log does not contain,
// and the output of `halfscope compare`, `halfscope policies` and `halfscope simulate`.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "cli/simulate/simulation.hpp"
#include "reports/answer/answer.hpp"

namespace halfscope::cli::terminal {

/// Column count that means no line breaks; used if stdout is not a terminal.
inline constexpr std::size_t kUnwrapped = std::numeric_limits<std::size_t>::max();

/// Returns the terminal's columns, from 40 to 100, or kUnwrapped if stdout is not a terminal.
std::size_t columns_of_stdout();

/// Returns the text of `recommend`: the headline, the lines to paste, and the worst findings, in at
/// most kMostLines lines. `framework` selects the lines to paste; empty means the answer's default.
/// `more` is a last sentence that says where the rest is.
inline constexpr std::size_t kMostLines = 20;
std::string short_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                       std::string_view framework, std::string_view more, std::size_t columns);

/// Returns the text of `recommend --details`: as short_text(), with all findings and the evidence.
std::string long_text(const reports::answer::Answer& answer, const analyzers::Study& study,
                      std::string_view framework, std::size_t columns);

/// Returns the verdict, both runs side by side, and the tensors that changed most.
std::string comparison_text(const analyzers::compare::Comparison& comparison);

/// Returns the most important gaps as sentences, the names of the others, and the lines of code
/// that record them. Begins with an empty line. Returns an empty string if nothing is missing.
std::string gaps_text(const analyzers::underflow::Analysis& analysis);

/// Returns the run's own policy, the lines to paste, the ranking and the warnings. `framework` is
/// --framework as typed. `asked` is true if policies were named on the command line; then the
/// warnings are about all of them.
std::string policies_text(const analyzers::replay::PolicyStudy& study, const std::string& framework,
                          bool asked);

/// Returns all policies with their defaults and sources.
std::string catalogue_text();

/// Returns the output of `halfscope simulate --list`.
std::string choices_text();

/// Returns the output at the end of a run.
std::string simulation_text(const simulate::Simulation& said);

}  // namespace halfscope::cli::terminal
