// SPDX-License-Identifier: Apache-2.0
// Finds each weight of a step and its update. Rules: docs/run-log.md and docs/json.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/updates/optimizer_update.hpp"
#include "analyzers/updates/updates.hpp"

namespace halfscope::analyzers::updates {

using TensorPointer = std::shared_ptr<const log::NamedTensor>;

/// Names, in the step's file, of a weight and of the tensors that its update is computed from.
struct PairNames {
  std::string weight;
  underflow::UpdateSource source = underflow::UpdateSource::update;
  std::string partner;  ///< update, gradient or weight_after; empty if only state is needed
  /// Set for the sources `optimizer_state` and `gradient`; its lr is known.
  std::optional<Optimizer> optimizer;
  std::string momentum_buffer, exp_avg, exp_avg_sq, step;  ///< state; empty if not needed
};

/// Returns true if the loss scaler skipped the step: such a step made no update.
bool was_skipped(const frames::WholeStep& step);

/// Returns the pairs of the selected weights, or of master weights that have no weight, each by its
/// best source. A tensor with another shape than its weight is skipped, with a note. For ranks
/// other than 0, only sharded weights have pairs.
std::vector<PairNames> pairs_of(const frames::WholeStep& step, const frames::Selection& selection,
                                frames::Notes& notes);

/// Returns the weights that the optimizer itself keeps (a master weight, where there is one), each
/// with the state after the step from which the step can be computed again.
std::vector<PairNames> optimizer_pairs_of(const frames::WholeStep& step,
                                          const frames::Selection& selection, frames::Notes& notes);

/// A pair's tensors. Loads only those that the source needs.
class Pair {
 public:
  /// `names` must be from pairs_of(). Throws std::invalid_argument if two tensors differ in size.
  Pair(const frames::WholeStep& step, const frames::Selection& selection, PairNames names);

  /// Visits the tensors that are loaded.
  void for_each_tensor(const std::function<void(const log::NamedTensor&)>& visit) const;
  /// Returns the tensor whose elements are narrower than 16 bits, so that updates are not counted;
  /// null if there is none.
  const log::NamedTensor* too_narrow() const;

  UpdateTable count(const UpdateOptions& options, const frames::ProgressCallback& tell) const;
  UpdateWhatIf what_if(const WhatIfOptions& options, const frames::ProgressCallback& tell) const;

  const log::NamedTensor& weight() const { return *weight_; }
  /// Returns false if the step has an `update` of the weight that does not follow from the recorded
  /// gradient: the gradient was changed before the step, as by clipping.
  bool uses_gradient() const;
  /// Returns the inputs of the optimizer's step. Requires names from optimizer_pairs_of(), or the
  /// sources `optimizer_state` or `gradient`.
  OptimizerInputs inputs() const;

 private:
  TensorPointer load(const std::string& name) const;
  bool is_plain() const;
  /// Returns the update, element by element, if it is not recorded.
  ComputedUpdate computed() const;

  const frames::WholeStep& step_;
  PairNames names_;
  double scale_ = 1.0;  ///< loss scale of the gradient
  double steps_ = 1;    ///< steps that the optimizer has taken
  TensorPointer weight_, partner_, momentum_buffer_, exp_avg_, exp_avg_sq_, counter_;
};

}  // namespace halfscope::analyzers::updates
