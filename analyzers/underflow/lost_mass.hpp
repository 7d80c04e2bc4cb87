// SPDX-License-Identifier: Apache-2.0
// How much of the gradients' L1 and L2 mass is flushed, beside how many values are: small values
// may be many and not matter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/recommend_options.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope::analyzers::underflow {

/// The tensors of all logs that a loss scale acts on.
std::vector<const TensorFindings*> counted_tensors(const Analysis& analysis);

/// Sums of nothing, exact wherever the target may flush: a binade needs one cut for it, not those
/// of all formats.
MagnitudeSums sums_for(const Target& target);

/// The share of a tensor's mass that is flushed at loss scale 2^k: exact from whole tensors
/// (TensorFindings::sums), bounds from the table otherwise.
MassShare lost_mass(const TensorFindings& tensor, const Target& target, int k);

/// The same over several tensors together, at any scale: exact sums are added up once. Refers to
/// the target and the tensors.
class LostMass {
 public:
  LostMass(std::vector<const TensorFindings*> tensors, const Target& target);
  MassShare at(int k) const;
  const std::vector<const TensorFindings*>& tensors() const { return tensors_; }

 private:
  std::vector<const TensorFindings*> tensors_;
  const Target& target_;
  std::optional<MagnitudeSums> exact_;  ///< of all of them; empty where some have bounds alone
};

/// The tensor that surely loses the largest share of its own sum of squares.
struct WorstLoss {
  std::string tensor;
  Bounds l2;
};
std::optional<WorstLoss> worst_loss(const std::vector<const TensorFindings*>& tensors,
                                    const Target& target, int k);

/// Whether a loss does no harm: neither of all gradients together nor of one tensor alone.
bool is_negligible(const MassShare& all, const std::optional<WorstLoss>& worst,
                   const RecommendOptions& options);

}  // namespace halfscope::analyzers::underflow
