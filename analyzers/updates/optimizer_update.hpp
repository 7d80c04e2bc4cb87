// SPDX-License-Identifier: Apache-2.0
// Optimizers as logs describe them, and the updates that they made.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyzers/readers/samples.hpp"
#include "halfscope/optimizer/step.hpp"

namespace halfscope::analyzers::updates {

/// One parameter's optimizer at one step, as recorded in the log.
struct Optimizer : optimizer::Settings {
  std::optional<double> rate;  ///< empty if the log does not say; Settings::lr is not used
  /// Settings that the log lacks, so that torch.optim's defaults are used: "betas 0.9 and 0.999".
  std::vector<std::string> assumed;
  const optimizer::Variant* row = &optimizer::variants().front();  ///< PyTorch's implementation

  bool has_buffer() const { return !is_adam() && momentum != 0; }
  /// Returns true if the update is -lr times the gradient.
  bool is_plain_sgd() const {
    return !is_adam() && momentum == 0 && weight_decay == 0 && !maximize;
  }
  /// Returns the settings with the learning rate, which must be known.
  Settings settings() const;
};

/// Returns the optimizer of the parameter called `parameter` (the name after the role). Settings
/// are from the sampled step, else the manifest; the learning rate is from the sampled step, else
/// the step's scalars. Empty if the log names no optimizer, or none of these three.
std::optional<Optimizer> optimizer_of(const frames::WholeStep& step, const std::string& parameter);

/// The same from the manifest alone, without a learning rate.
std::optional<Optimizer> optimizer_of(const log::Manifest& manifest, const std::string& parameter);

/// Tensors of one parameter at one step; moments are those after the step. If amsgrad is set,
/// `largest` is used in place of `second`.
struct OptimizerInputs : optimizer::Views {
  double gradient_scale = 1.0;
  double steps = 1;  ///< number of steps so far, with this one
};

/// An update, in binary64 if some input is, else in binary32: as the optimizer computed it.
struct ComputedUpdate {
  std::variant<std::vector<float>, std::vector<double>> values;
  TensorView view() const;
};

/// Returns u such that w_next = w + u. Requires a known rate, and equal lengths of all views that
/// the optimizer needs. Computes as the optimizer's row does, but for the rounding of u itself.
ComputedUpdate compute_update(const Optimizer& optimizer, const OptimizerInputs& inputs);

/// Returns after - before in binary64. Both tensors must have the same length.
ComputedUpdate subtract(const TensorView& after, const TensorView& before);

/// Returns the first element of a tensor, which must not be empty.
double first_element(const TensorView& tensor);

}  // namespace halfscope::analyzers::updates
