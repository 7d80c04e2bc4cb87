// SPDX-License-Identifier: Apache-2.0
// One step of an optimizer as a list of instructions: the operations that PyTorch applies to each
// element, in its order, with the places where it rounds. docs/numerics/optimizer.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halfscope/optimizer/settings.hpp"

namespace halfscope::optimizer {

/// Operands of an instruction: a value of the element (weight to temporary2), or a number that is
/// the same for all elements of a step.
enum class Operand : std::uint8_t {
  weight,
  gradient,
  first,    ///< exp_avg, or momentum_buffer of SGD
  second,   ///< exp_avg_sq
  largest,  ///< max_exp_avg_sq
  denominator,
  temporary,
  temporary2,
  // Numbers. Each is computed in binary64, as Python does, and rounded where a row says so.
  zero,
  minus_one,
  scale,  ///< the loss scale of the gradient
  lr,
  minus_lr,
  decay,     ///< weight_decay
  lr_decay,  ///< lr * weight_decay
  kept,      ///< 1 - lr * weight_decay
  beta1,
  minus_beta1,
  beta2,
  minus_beta2,
  new1,  ///< 1 - beta1
  new2,  ///< 1 - beta2
  old1,  ///< 1 - new1: the factor of lerp from one half on
  minus_old1,
  momentum,
  undamped,   ///< 1 - dampening
  step_size,  ///< lr / (1 - beta1^t)
  minus_step_size,
  correction1,           ///< 1 - beta1^t
  root_correction2,      ///< sqrt(1 - beta2^t)
  inverse_root,          ///< 1 / root_correction2
  root_times_step_size,  ///< root_correction2 * -step_size
  eps_over_step_size,    ///< eps / -step_size
  eps,
};
inline constexpr int kValues = 8;  ///< operands before Operand::zero
inline constexpr int kNumbersEnd = static_cast<int>(Operand::eps) + 1;
/// Each number also has a twin, rounded to the dtype of the parameters.
inline constexpr int kOperands = 2 * kNumbersEnd;

enum class Operation : std::uint8_t {
  copy,
  add,
  subtract,
  multiply,
  divide,
  fma,         ///< a * b + c, rounded once
  contracted,  ///< fma, or in a 16-bit tail two operations; no loop computes it
  minus_fma,   ///< c - a * b, rounded once
  root,
  maximum
};

/// Rounding of a result beyond that of the operation itself.
enum class Rounded : std::uint8_t {
  no,
  binary32,  ///< matters in programs that compute in binary64
  stored     ///< to the dtype of the parameters: the result of one of PyTorch's operations
};

/// Condition under which an instruction belongs to the program of a step.
enum class When : std::uint8_t {
  always,
  scaled,  ///< the optimizer divides the gradient by the loss scale
  maximizes,
  decays_gradient,  ///< weight decay is added to the gradient: Adam, SGD
  decays_weight,    ///< weight decay acts on the weight: AdamW
  lerp_small,       ///< 1 - beta1 < 0.5
  lerp_large,
  amsgrad,
  not_amsgrad,
  next_buffer,   ///< SGD with momentum, from its second step on
  first_buffer,  ///< SGD with momentum at its first step
  nesterov,
  plain_buffer,  ///< SGD with momentum, without Nesterov
};

/// Numbers that PyTorch rounds to the dtype of the parameters before they meet an element: by `yes`
/// and `foreach` on a CPU, by `tensor` everywhere (tensors of one element, by type promotion).
enum class Narrow : std::uint8_t { no, yes, foreach, tensor };

/// to = a (operation) b, for each element.
struct Instruction {
  When when;
  Operand to;
  Operation operation;
  Operand a, b = Operand::weight, c = Operand::weight;
  Rounded rounded = Rounded::no;
  Narrow narrow = Narrow::no;
};

}  // namespace halfscope::optimizer
