// SPDX-License-Identifier: Apache-2.0
// Conditions on what an analysis found, as --fail-if takes them: 'FIELD OP NUMBER[%] [for WHAT]'.
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
namespace halfscope::analyzers::ranks {
struct RankStudy;
}

namespace halfscope::analyzers::gates {

enum class Relation { less, less_equal, greater, greater_equal, equal, not_equal };

/// What a condition is tested on: every tensor of an analysis, a recommendation, or every tensor of
/// two runs compared, or the numbers of one step of a training loop, which the recorder has. Beside
/// the first two the fields of a log, on every log.
enum class Subject { tensor, recommendation, comparison, step };

struct Condition {
  std::string text;  ///< as typed
  std::string field;
  Relation relation = Relation::greater;
  /// A decimal, or 2^K, kept as text because it is compared exactly; of `state`, one of its names.
  std::string limit;
  bool percent = false;  ///< the field is taken as a share of its base
  std::string only;      ///< a role or a glob over tensor names; empty for all tensors
};

/// Throws std::invalid_argument saying what was found and what is wanted.
Condition parse_condition(std::string_view text, Subject subject);

/// Whether conditions on this subject may be about this field.
bool has_field(Subject subject, std::string_view name);

/// Whether it is about a log's loss scale and skipped steps.
bool is_of_timeline(const Condition& condition);

/// Whether it is about the ranks of a log beside one another.
bool is_of_ranks(const Condition& condition);

/// Whether it is about weight updates, which only weights have.
bool is_of_updates(const Condition& condition);

/// Whether it is about what FP8 or FP4 lost, as frameworks measured it.
bool is_of_quantised(const Condition& condition);

/// Whether it is about how a log's tensors end, too, so that one without a timeline has it.
bool is_of_end(const Condition& condition);

/// What a printed share stands for.
struct ShareRange {
  double low = 0, high = 0;
};

/// What a field holds: a count, a share, or a number.
using Measured =
    std::variant<Interval, underflow::Share, ShareRange, double, scale_history::RunState>;

/// `value` as a result; empty where it is absent or not finite.
std::optional<Measured> finite_number(std::optional<double> value);

/// Empty where the field has no value: no finite value, no scale, or a share of no values.
std::optional<Measured> measure(const Condition& condition,
                                const underflow::TensorFindings& tensor);
/// Of magnitudes without counts: how many values are so is bounded from below alone.
std::optional<Measured> measure(const Condition& condition, const underflow::TensorPeaks& tensor);
std::optional<Measured> measure(const Condition& condition,
                                const recommend::Recommendation& advice);
std::optional<Measured> measure(const Condition& condition, const compare::ComparedTensor& tensor);
std::optional<Measured> measure(const Condition& condition, const formats::QuantisedTensor& tensor);
/// Empty where the ranks have too few values to be compared.
std::optional<Measured> measure(const Condition& condition, const ranks::RankStudy& study);
/// Empty too where the log does not tell; NaN of a step since which something is so that is not.
std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts& facts);
/// The same where tensors tell of the end, too. `facts`: null where the log has no such scalars.
/// `broken_since`: the step from which on its tensors hold NaN or infinities.
std::optional<Measured> measure(const Condition& condition,
                                const scale_history::TimelineFacts* facts,
                                std::optional<std::int64_t> broken_since);

/// Whether the condition is meant for this tensor.
bool applies(const Condition& condition, const underflow::TensorFindings& tensor);
bool applies(const Condition& condition, const underflow::TensorPeaks& tensor);
bool applies(const Condition& condition, const compare::ComparedTensor& tensor);
bool applies(const Condition& condition, const formats::QuantisedTensor& tensor);

/// Whether its role or glob is of such a tensor.
bool selects(const Condition& condition, log::Role role, const std::string& name);

enum class Verdict { fails, holds, undecided };

/// Counts and shares are compared with the limit as the exact rational it is, numbers with the
/// binary64 number it parses to. Undecided where the ends of an interval disagree.
Verdict test(const Condition& condition, const Measured& value);

}  // namespace halfscope::analyzers::gates
