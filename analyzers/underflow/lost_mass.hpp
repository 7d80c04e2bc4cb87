// SPDX-License-Identifier: Apache-2.0
// The share of the gradients' L1 and L2 mass that is flushed, in addition to the number of values:
// small values may be many and still not matter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/recommend_options.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope::analyzers::underflow {

/// Returns the tensors of all logs that a loss scale acts on.
std::vector<const TensorFindings*> loss_scaled_tensors(const Analysis& analysis);

/// Returns empty sums that are exact at the magnitude below which the target flushes. A binade
/// needs one cut for this, not the cuts of all formats.
MagnitudeSums sums_for(const Target& target);

/// Returns the share of a tensor's mass that is flushed at loss scale 2^k: exact if whole tensors
/// were summed (TensorFindings::sums), else bounds from the histogram.
MassShare lost_mass(const TensorFindings& tensor, const Target& target, int k);

/// The same share for several tensors together, at any scale; exact sums are added up once. Keeps
/// references to the target and the tensors.
class LostMass {
 public:
  LostMass(std::vector<const TensorFindings*> tensors, const Target& target);
  MassShare at(int k) const;
  const std::vector<const TensorFindings*>& tensors() const { return tensors_; }

 private:
  std::vector<const TensorFindings*> tensors_;
  const Target& target_;
  std::optional<MagnitudeSums> exact_;  ///< sum over all tensors; empty if some have only bounds
};

/// The tensor that surely loses the largest share of its own sum of squares.
struct WorstLoss {
  std::string tensor;
  Bounds l2;
};
std::optional<WorstLoss> worst_loss(const std::vector<const TensorFindings*>& tensors,
                                    const Target& target, int k);

/// Returns true if the loss is harmless, in all gradients together and in each tensor alone.
bool is_negligible(const MassShare& all, const std::optional<WorstLoss>& worst,
                   const RecommendOptions& options);

}  // namespace halfscope::analyzers::underflow
