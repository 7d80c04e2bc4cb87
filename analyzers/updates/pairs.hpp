// SPDX-License-Identifier: Apache-2.0
// Which tensors of a step are a weight and its update. Rules: docs/run-log.md and docs/json.md.
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

/// A weight and what its update is made of, by the names the step's file has.
struct PairNames {
  std::string weight;
  underflow::UpdateSource source = underflow::UpdateSource::update;
  std::string partner;  ///< update, gradient or weight_after; empty where only state is needed
  /// `optimizer_state` and `gradient`: its lr is known.
  std::optional<Optimizer> optimizer;
  std::string momentum_buffer, exp_avg, exp_avg_sq, step;  ///< state; empty where not needed
};

/// Pairs of the selected weights, or master weights where there is no weight, by the best source
/// each has. A tensor of another shape than its weight's is skipped, with a note. Of a rank other
/// than 0 only what is sharded.
std::vector<PairNames> pairs_of(const frames::WholeStep& step, const frames::Selection& selection,
                                frames::Notes& notes);

/// A pair's tensors: as few at once as the source needs.
class Pair {
 public:
  /// The names are of pairs_of(). Throws std::invalid_argument where two tensors differ in size.
  Pair(const frames::WholeStep& step, const frames::Selection& selection, PairNames names);

  /// All that are loaded.
  void for_each_tensor(const std::function<void(const log::NamedTensor&)>& visit) const;
  /// The tensor that updates are not counted of, since its elements are narrower than 16 bits; null
  /// where there is none.
  const log::NamedTensor* too_narrow() const;

  UpdateTable count(const UpdateOptions& options, const frames::ProgressCallback& tell) const;
  UpdateWhatIf what_if(const WhatIfOptions& options, const frames::ProgressCallback& tell) const;

 private:
  OptimizerInputs inputs() const;
  TensorPointer load(const std::string& name) const;
  bool is_plain() const;
  /// The update, element by element, where it is not recorded.
  ComputedUpdate computed() const;

  const frames::WholeStep& step_;
  PairNames names_;
  double scale_ = 1.0;  ///< the gradient's
  double steps_ = 1;    ///< taken by the optimizer
  TensorPointer weight_, partner_, momentum_buffer_, exp_avg_, exp_avg_sq_, counter_;
};

}  // namespace halfscope::analyzers::updates
