// SPDX-License-Identifier: Apache-2.0
#include "halfscope/optimizer/numbers.hpp"

#include <cmath>

namespace halfscope::optimizer {

namespace {

using O = Operand;

/// Largest error of a device's powf: CUDA C++ Programming Guide, "Mathematical Functions".
constexpr float kPowerUlps = 4;

double& at(Numbers& numbers, Operand operand) { return numbers[static_cast<std::size_t>(operand)]; }

/// Returns beta^t in binary32; `ulps` is added to it.
float power(double beta, double steps, float ulps) {
  const auto value = static_cast<float>(std::pow(static_cast<float>(beta), steps));
  return value + ulps * (std::nextafter(value, 2.0f) - value);
}

/// Bias corrections in Python's numbers.
void correct(const Settings& s, const StepOptions& o, Numbers& to) {
  at(to, O::correction1) = 1 - std::pow(s.beta1, o.steps);
  at(to, O::step_size) = s.lr / at(to, O::correction1);
  at(to, O::root_correction2) = std::pow(1 - std::pow(s.beta2, o.steps), 0.5);
}

/// The same in binary32, as a kernel or PyTorch's operations on a tensor of one element do. A step
/// is longer for a larger beta1^t and a smaller beta2^t.
void correct_in_binary32(const Variant& variant, const Settings& s, const StepOptions& o,
                         Numbers& to) {
  const bool bounded = variant.accuracy == Accuracy::powers && o.bound != Bound::nearest;
  const float ulps = !bounded ? 0 : o.bound == Bound::longest ? kPowerUlps : -kPowerUlps;
  float one = 1 - power(s.beta1, o.steps, ulps);
  float two = 1 - power(s.beta2, o.steps, -ulps);
  if (variant.corrections == Corrections::kernel64) {
    one = static_cast<float>(1 - std::pow(s.beta1, o.steps));
    two = static_cast<float>(1 - std::pow(s.beta2, o.steps));
  }
  const float root = std::sqrt(two);
  const auto lr = static_cast<float>(s.lr), eps = static_cast<float>(s.eps);
  const auto decay = static_cast<float>(s.weight_decay);
  at(to, O::correction1) = one;
  at(to, O::root_correction2) = root;
  if (variant.corrections != Corrections::kernel64) at(to, O::lr_decay) = lr * decay;
  switch (variant.corrections) {
    case Corrections::python: break;
    case Corrections::kernel: at(to, O::step_size) = lr / one; break;
    case Corrections::kernel64: at(to, O::step_size) = static_cast<float>(s.lr / one); break;
    case Corrections::tensor: {  // number / tensor is tensor.reciprocal() * number
      const float size = (1 / one) * lr;
      at(to, O::step_size) = size;
      at(to, O::root_times_step_size) = root * -size;
      at(to, O::eps_over_step_size) = (1 / -size) * eps;
      break;
    }
    case Corrections::tensors: at(to, O::step_size) = -1 / (-one / lr); break;
  }
}

}  // namespace

Numbers numbers_of(const Variant& variant, const Settings& s, const StepOptions& o) {
  Numbers to = {};
  at(to, O::minus_one) = -1;
  at(to, O::scale) = o.scale;
  at(to, O::lr) = s.lr;
  at(to, O::minus_lr) = -s.lr;
  at(to, O::decay) = s.weight_decay;
  at(to, O::lr_decay) = s.lr * s.weight_decay;
  at(to, O::kept) = 1 - s.lr * s.weight_decay;
  at(to, O::beta1) = s.beta1;
  at(to, O::minus_beta1) = -s.beta1;
  at(to, O::beta2) = s.beta2;
  at(to, O::minus_beta2) = -s.beta2;
  at(to, O::new1) = 1 - s.beta1;
  at(to, O::new2) = 1 - s.beta2;
  at(to, O::momentum) = s.momentum;
  at(to, O::undamped) = 1 - s.dampening;
  at(to, O::eps) = s.eps;
  if (variant.corrections == Corrections::python) {
    correct(s, o, to);
  } else {
    correct_in_binary32(variant, s, o, to);
  }
  at(to, O::minus_step_size) = -at(to, O::step_size);
  at(to, O::inverse_root) =
      1 / static_cast<double>(static_cast<float>(at(to, O::root_correction2)));
  return to;
}

}  // namespace halfscope::optimizer
