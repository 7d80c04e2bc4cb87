// SPDX-License-Identifier: Apache-2.0
// What the charts of a page draw that is no single tensor: sums over the tensors of a role.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// One column of a heat map: a recorded step, or a run of them when there are too many to tell
/// apart on a screen.
struct Column {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<analyzers::underflow::BinadeCount> binades;  ///< ascending
};

/// Sums over tensors of one log.
struct Series {
  std::uint64_t tensors = 0;
  std::uint64_t recorded_steps = 0;     ///< distinct steps
  analyzers::underflow::Counts counts;  ///< at Analysis::loss_scale
  std::vector<analyzers::underflow::BinadeCount> binades;
  std::vector<Column> columns;  ///< ascending by step
};

/// Most columns a heat map gets; longer runs are drawn with several steps a column.
inline constexpr std::size_t kMostColumns = 120;

using Tensors = std::vector<const analyzers::underflow::TensorFindings*>;

Series sum(const Tensors& tensors);
/// As TensorFindings::by_scale.
std::vector<Classes> by_scale(const Tensors& tensors, const analyzers::underflow::Target& target);

/// The tensors of all logs, of one log; of those, one role's, or those a loss scale is chosen for.
Tensors all_tensors(const analyzers::underflow::Analysis& analysis);
Tensors of_log(const analyzers::underflow::LogFindings& log);
Tensors of_role(const Tensors& tensors, log::Role role);
Tensors counted_of(const Tensors& tensors);

/// All tensors, worst first: those with NaN or infinities, those that overflow, then the rest;
/// within these gradients first, then by the share that overflows, then by that which becomes zero.
/// What no loss scale acts on is judged without one.
Tensors worst_first(const analyzers::underflow::Analysis& analysis);

/// What becomes of a tensor at the analysis' loss scale, or at 1 where no loss scale acts on it.
Classes classes_of(const analyzers::underflow::Analysis& analysis,
                   const analyzers::underflow::TensorFindings& tensor);

/// Roles that occur, in the order of reports; whether a loss scale acts on tensors of one.
std::vector<log::Role> roles_in(const analyzers::underflow::Analysis& analysis);
bool is_counted(const analyzers::underflow::Analysis& analysis, log::Role role);

}  // namespace halfscope::reports::answer
