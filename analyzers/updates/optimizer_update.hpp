// SPDX-License-Identifier: Apache-2.0
// Updates recomputed from what a log has of the optimizer: the formulas of torch.optim's SGD, Adam
// (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), by the operations and in the
// arithmetic PyTorch applies on a CPU (python/halfscope/torch/updates.py).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyzers/readers/samples.hpp"

namespace halfscope::analyzers::updates {

/// One parameter's optimizer at one step, as the log tells it.
struct Optimizer {
  enum class Kind : std::uint8_t { sgd, adam, adamw };
  Kind kind = Kind::sgd;
  std::optional<double> lr;  ///< empty where the log does not say
  double momentum = 0;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool nesterov = false, maximize = false, amsgrad = false;
  bool decoupled = false;  ///< decay acts on the weight, not on the gradient
  /// What the log does not say, so that torch.optim's default is taken: "betas 0.9 and 0.999".
  std::vector<std::string> assumed;

  bool has_buffer() const { return kind == Kind::sgd && momentum != 0; }
  /// -lr times the gradient is all there is to it.
  bool is_plain_sgd() const {
    return kind == Kind::sgd && momentum == 0 && weight_decay == 0 && !maximize;
  }
};

/// The optimizer of the parameter called `parameter` (the name after the role): hyperparameters of
/// the sampled step, else the manifest's; the learning rate of the sampled step, else the step's
/// scalars. Empty where the log does not say, or names an optimizer that is not one of the three.
std::optional<Optimizer> optimizer_of(const frames::WholeStep& step, const std::string& parameter);

/// The same as the manifest alone tells, without a learning rate.
std::optional<Optimizer> optimizer_of(const log::Manifest& manifest, const std::string& parameter);

/// What an update is recomputed from; empty views where the optimizer does not need them.
struct OptimizerInputs {
  TensorView weight;
  TensorView gradient;
  double gradient_scale = 1.0;
  TensorView momentum_buffer;      ///< after the step, as all state
  TensorView exp_avg, exp_avg_sq;  ///< exp_avg_sq: max_exp_avg_sq where amsgrad
  double steps = 1;                ///< taken so far, this one included
};

/// In binary32, or in binary64 where a tensor has it: as the optimizer computed.
struct ComputedUpdate {
  std::variant<std::vector<float>, std::vector<double>> values;
  TensorView view() const;
};

/// u, so that w_next = w + u. The optimizer's lr must be known, and all views that it needs be of
/// one length. What the optimizer does by several roundings is done by the same ones; on a GPU,
/// and in its fused kernels, the last bits may differ.
ComputedUpdate compute_update(const Optimizer& optimizer, const OptimizerInputs& inputs);

/// after - before, in binary64, of tensors of one length.
ComputedUpdate subtract(const TensorView& after, const TensorView& before);

/// The first element of a tensor that has one.
double first_element(const TensorView& tensor);

}  // namespace halfscope::analyzers::updates
