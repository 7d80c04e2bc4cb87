// SPDX-License-Identifier: Apache-2.0
// Sums over the tensors of a role or a log, as the charts of a page draw them, and shares that may
// be known only between bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// One column of a heat map: a recorded step, or several consecutive ones in a long run.
struct Column {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<analyzers::underflow::BinadeCount> binades;  ///< ascending by exponent
};

/// Sums over tensors.
struct Series {
  std::uint64_t tensors = 0;
  std::uint64_t recorded_steps = 0;     ///< number of distinct steps
  analyzers::underflow::Counts counts;  ///< at Analysis::loss_scale
  std::vector<analyzers::underflow::BinadeCount> binades;
  std::vector<Column> columns;  ///< ascending by step
};

/// Most columns of a heat map. In longer runs, a column has several steps.
inline constexpr std::size_t kMostColumns = 120;

using Tensors = std::vector<const analyzers::underflow::TensorFindings*>;

Series sum(const Tensors& tensors);
/// Returns the sums of TensorFindings::by_scale().
std::vector<Classes> by_scale(const Tensors& tensors, const analyzers::underflow::Target& target);

/// The tensors of all logs, of one log, of one role, or only those with
/// TensorFindings::loss_scaled.
Tensors all_tensors(const analyzers::underflow::Analysis& analysis);
Tensors of_log(const analyzers::underflow::LogFindings& log);
Tensors of_role(const Tensors& tensors, log::Role role);
Tensors counted_of(const Tensors& tensors);

/// Returns all tensors, worst first: those with NaN or infinities, then those that overflow, then
/// the rest. Within each, gradients are first, then larger shares of overflow, then larger shares
/// that become zero. Tensors that the loss scale does not multiply are judged at scale 1.
Tensors worst_first(const analyzers::underflow::Analysis& analysis);

/// Returns a tensor's classes at the analysis' loss scale, or at 1 if no loss scale multiplies it.
Classes classes_of(const analyzers::underflow::Analysis& analysis,
                   const analyzers::underflow::TensorFindings& tensor);

/// Returns the log's name and a colon if there are several logs, else an empty string.
std::string log_prefix(const analyzers::underflow::Analysis& analysis, const std::string& log);

/// Returns the roles that occur, in the order of the enumeration. is_counted() returns true if the
/// loss scale multiplies some tensor of the role.
std::vector<log::Role> roles_in(const analyzers::underflow::Analysis& analysis);
bool is_counted(const analyzers::underflow::Analysis& analysis, log::Role role);

/// Returns the bounds of the share that `part` has of a tensor's finite nonzero values; 0 if there
/// are none. `of`: the number of these values. A value that is either zero or flushed counts in
/// `of` only if it is flushed; the bounds allow for that.
Bounds class_share(const Classes& classes, Interval Classes::*part, const Interval& of);

/// Returns the same share as text: "3.1 % to 4.7 %"; "no values" if there are none.
std::string class_share_text(const Classes& classes, Interval Classes::*part, const Interval& of);

/// Returns a tensor's largest magnitude: "0.0311 (2^-5.0)", "0.0311 to 0.0342 (2^-4.9)", "none".
std::string largest_text(const analyzers::underflow::TensorFindings& tensor);

/// Returns the number of NaN and infinities. Values beyond the last bucket are possible ones.
Interval nonfinite_values(const analyzers::underflow::TensorFindings& tensor);

/// Returns the share that becomes zero at the analysis' loss scale.
Bounds flushed_share(const analyzers::underflow::Counts& counts);

}  // namespace halfscope::reports::answer
