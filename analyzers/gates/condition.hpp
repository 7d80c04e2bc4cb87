// SPDX-License-Identifier: Apache-2.0
// Conditions on results, as --fail-if accepts them: 'FIELD OP NUMBER[%] [for ROLE-OR-GLOB]'.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analyzers/formats/quantised.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/tensor_peaks.hpp"

namespace halfscope::analyzers::compare {
struct ComparedTensor;
}
namespace halfscope::analyzers::weights {
struct Claim;
struct TensorMovement;
}  // namespace halfscope::analyzers::weights
namespace halfscope::analyzers::ranks {
struct RankStudy;
}

namespace halfscope::analyzers::gates {

enum class Relation { less, less_equal, greater, greater_equal, equal, not_equal };

/// The objects that a condition is tested on: every tensor of an analysis, a recommendation, every
/// tensor of two compared runs, or the numbers of one training step, which the recorder has. With
/// `tensor` and `recommendation` it may also name a field of a log, tested on each log.
enum class Subject { tensor, recommendation, comparison, step };

struct Condition {
  std::string text;  ///< the text that the user wrote
  std::string field;
  Relation relation = Relation::greater;
  /// A decimal number or 2^K, kept as text to be compared exactly; for `state`, a state's name.
  std::string limit;
  bool percent = false;  ///< compares the field as a percentage of its base
  std::string only;      ///< a role or a glob over tensor names; empty: all tensors
};

/// Throws std::invalid_argument with the text found and the text expected.
Condition parse_condition(std::string_view text, Subject subject);

/// Returns true if conditions on this subject may use this field.
bool has_field(Subject subject, std::string_view name);

/// Returns true if the condition is about a log's loss scale, skipped steps or state.
bool is_of_timeline(const Condition& condition);

/// Returns true if the condition compares the ranks of a log.
bool is_of_ranks(const Condition& condition);

/// Returns true if the condition is about weight updates, which only weights have.
bool is_of_updates(const Condition& condition);

/// Returns true if the condition is about FP8 or FP4 losses that the framework measured.
bool is_of_quantised(const Condition& condition);

/// Returns true if the condition is about weights that never moved, or about FP32 tensors that hold
/// fewer bits.
bool is_of_weights(const Condition& condition);

/// Returns true if a log's last tensors can decide the condition too, even without a timeline.
bool is_of_end(const Condition& condition);

/// Bounds of a share that the framework printed in rounded form.
struct ShareRange {
  double low = 0, high = 0;
};

/// The value of a field: a count, a share or a number.
using Measured =
    std::variant<Interval, underflow::Share, ShareRange, double, scale_history::RunState>;

/// Returns `value` as a result; empty if it is absent or not finite.
std::optional<Measured> finite_number(std::optional<double> value);

/// Returns a count, or the share of `of` if the condition has a percentage; empty if `of` is zero.
std::optional<Measured> count_of(const Condition& condition, const Interval& count,
                                 const Interval& of);

/// Each measure() returns the value of the condition's field. Empty if there is none: no finite
/// value, no recommended scale, or a share of zero values.
std::optional<Measured> measure(const Condition& condition,
                                const underflow::TensorFindings& tensor);
/// For tensors that have magnitudes but no counts: counts are bounded from below only.
std::optional<Measured> measure(const Condition& condition, const underflow::TensorPeaks& tensor);
std::optional<Measured> measure(const Condition& condition,
                                const recommend::Recommendation& advice);
std::optional<Measured> measure(const Condition& condition, const compare::ComparedTensor& tensor);
std::optional<Measured> measure(const Condition& condition, const formats::QuantisedTensor& tensor);
std::optional<Measured> measure(const Condition& condition, const weights::TensorMovement& tensor);
/// The number of tensors with a fault. A claim is of a kind of tensors.
std::optional<Measured> measure(const Condition& condition, const weights::Claim& claim);
/// Empty if the ranks have too few values to be compared.
std::optional<Measured> measure(const Condition& condition, const ranks::RankStudy& study);
/// Also empty if the log does not show the field; NaN if the field is a step and there is none.
std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts& facts);
/// As above, with the evidence of the tensors at the end of the log. `facts`: null if the log has
/// no such scalars. `broken_since`: first step of the final run of steps whose tensors hold NaN or
/// infinities; empty if there is none.
std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts* facts,
                                std::optional<std::int64_t> broken_since);

/// Returns true if the condition covers this tensor.
bool applies(const Condition& condition, const underflow::TensorFindings& tensor);
bool applies(const Condition& condition, const underflow::TensorPeaks& tensor);
bool applies(const Condition& condition, const compare::ComparedTensor& tensor);
bool applies(const Condition& condition, const formats::QuantisedTensor& tensor);
bool applies(const Condition& condition, const weights::TensorMovement& tensor);
bool applies(const Condition& condition, const weights::Claim& claim);

/// Returns true if the condition's role or glob covers tensors of this role and name.
bool selects(const Condition& condition, log::Role role, const std::string& name);

enum class Verdict { fails, holds, undecided };

/// Compares counts and shares with the limit as an exact rational, numbers with the limit rounded
/// to binary64. Returns `undecided` if the bounds of an interval give different answers.
Verdict test(const Condition& condition, const Measured& value);

std::optional<scale_history::RunState> state_named(std::string_view name);

/// Throws std::invalid_argument unless a condition on `state` compares it by == or != with a state.
void require_state(const Condition& condition);

}  // namespace halfscope::analyzers::gates
