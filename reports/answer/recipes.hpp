// SPDX-License-Identifier: Apache-2.0
// Sentences on what recipes of block formats do to the operands of a run's products, and lines that
// keep layers in BF16.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// A tensor in one orientation, quantised by one recipe.
struct Operand {
  const analyzers::underflow::TensorFindings* tensor = nullptr;
  const analyzers::underflow::RecipeFit* fit = nullptr;

  std::string layer() const;    ///< the tensor's name without its role: "model.layers.3.mlp.fc1"
  std::string product() const;  ///< "forward", "data gradient", "forward, data gradient", ...
  /// Returns the signal-to-noise ratio, in dB; infinite if nothing is rounded.
  double db() const { return fit->noise->db; }
  /// Returns how far that is below the ratio of normal numbers by the same recipe, in dB.
  double below_normal() const { return fit->normal_db - db(); }
  /// Returns true if the operand is much worse than normal numbers: at least twice the noise
  /// (kMuchBelowDb), or kMuchMoreZero more of the values become zero.
  bool much_worse() const;
};

inline constexpr double kMuchBelowDb = 3;
inline constexpr double kMuchMoreZero = 0.1;

/// Returns the operands that were quantised, in the order of the tensors.
std::vector<Operand> operands(const analyzers::underflow::Analysis& analysis);

/// Returns the section: for each recipe the range of the ratios, the layers to keep in BF16 with
/// lines to paste, and bias; a table of operands, worst first. Empty without `--recipe`. In a run
/// log activation/X is what X puts out, so that the layer to keep is the one that reads it.
Section recipes_section(const analyzers::Findings& found);

/// Returns a summary that the page shows while the section is folded.
std::string recipes_digest(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
