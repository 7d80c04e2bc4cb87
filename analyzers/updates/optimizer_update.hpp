// SPDX-License-Identifier: Apache-2.0
// Updates recomputed from the optimizer's data in a log: the formulas of torch.optim's SGD, Adam
// (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), with the operations and the
// arithmetic that PyTorch uses on a CPU (python/halfscope/torch/updates.py).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyzers/readers/samples.hpp"

namespace halfscope::analyzers::updates {

/// One parameter's optimizer at one step, as recorded in the log.
struct Optimizer {
  enum class Kind : std::uint8_t { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  std::optional<double> lr;  ///< empty if the log does not say
  double momentum = 0;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool nesterov = false, maximize = false, amsgrad = false;
  bool decoupled = false;  ///< weight decay acts on the weight, not on the gradient
  /// Settings that the log lacks, so that torch.optim's defaults are used: "betas 0.9 and 0.999".
  std::vector<std::string> assumed;

  bool has_buffer() const { return kind == Kind::sgd && momentum != 0; }
  /// Returns true if the update is -lr times the gradient.
  bool is_plain_sgd() const {
    return kind == Kind::sgd && momentum == 0 && weight_decay == 0 && !maximize;
  }
};

/// Returns the optimizer of the parameter called `parameter` (the name after the role). Settings
/// are from the sampled step, else the manifest; the learning rate is from the sampled step, else
/// the step's scalars. Empty if the log names no optimizer, or none of these three.
std::optional<Optimizer> optimizer_of(const frames::WholeStep& step, const std::string& parameter);

/// The same from the manifest alone, without a learning rate.
std::optional<Optimizer> optimizer_of(const log::Manifest& manifest, const std::string& parameter);

/// Inputs for recomputing an update. Views that the optimizer does not need are empty.
struct OptimizerInputs {
  TensorView weight;
  TensorView gradient;
  double gradient_scale = 1.0;
  TensorView momentum_buffer;      ///< after the step, as for all state
  TensorView exp_avg, exp_avg_sq;  ///< exp_avg_sq: max_exp_avg_sq if amsgrad
  double steps = 1;                ///< number of steps so far, with this one
};

/// An update, in binary64 if some input is, else in binary32: as the optimizer computed it.
struct ComputedUpdate {
  std::variant<std::vector<float>, std::vector<double>> values;
  TensorView view() const;
};

/// Returns u such that w_next = w + u. Requires a known lr, and equal lengths of all views that the
/// optimizer needs. Rounds after each operation as the optimizer does; on a GPU, and in PyTorch's
/// fused kernels, the last bits may differ.
ComputedUpdate compute_update(const Optimizer& optimizer, const OptimizerInputs& inputs);

/// Returns after - before in binary64. Both tensors must have the same length.
ComputedUpdate subtract(const TensorView& after, const TensorView& before);

/// Returns the first element of a tensor, which must not be empty.
double first_element(const TensorView& tensor);

}  // namespace halfscope::analyzers::updates
