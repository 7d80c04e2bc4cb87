// SPDX-License-Identifier: Apache-2.0
// Weight updates that are lost: sums over weights, sentences and tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

struct UpdateSum {
  std::size_t weights = 0;  ///< number of weights that have updates
  UpdateTable table;
  std::uint64_t undetermined = 0;
  std::optional<UpdateWhatIf> what_if;  ///< empty unless every weight has one
};

/// Returns the sums over those tensors that have updates.
UpdateSum sum_updates(const Tensors& tensors);
UpdateSum all_updates(const analyzers::underflow::Analysis& analysis);

/// Updates by the format in which the run keeps each weight.
struct SumsByKept {
  UpdateSum narrow;  ///< weights kept in the target format: the run itself loses these updates
  UpdateSum others;  ///< other weights: what the target format would lose
};
SumsByKept sums_by_kept(const Tensors& tensors, Format target);

/// Returns true if the lost updates of `part` are at least `share` of all updates.
bool loses_share(const UpdateSum& part, const SumsByKept& all, double share);

/// Returns the tensors that have updates, largest lost share first.
Tensors with_updates(const Tensors& tensors);

/// Returns the updates of all weights together and of each weight. Empty if no tensor has updates.
Section updates_section(const analyzers::underflow::Analysis& analysis, const Tensors& tensors);

/// For example "1.2 % of 34,567 updates lost in pure FP16".
std::string updates_digest(const analyzers::underflow::Analysis& analysis, const UpdateSum& sum);

/// Returns why the log shows no lost updates, and what to record.
std::string missing_updates_text(const analyzers::underflow::Analysis& analysis);

/// Returns "smaller than weight / 2048 (rule of thumb)", the updates that are taken as lost in
/// FP16. The divisor is 2^p for a target format of p significant bits.
std::string rule_of_thumb(const analyzers::underflow::Target& target);

Table what_if_table(const analyzers::underflow::Target& target, const UpdateSum& sum);

}  // namespace halfscope::reports::answer
