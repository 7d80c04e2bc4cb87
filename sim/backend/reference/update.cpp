// SPDX-License-Identifier: Apache-2.0
// The optimizer's rules as torch.optim.SGD and Adam define them (dampening 0, no Nesterov, no
// AMSGrad; weight decay is added to the gradient).
#include <cmath>

#include "sim/backend/reference/backend.hpp"

namespace halfscope::sim::backend::reference {
namespace {

/// Returns the step of Adam (Kingma, Ba 2015, algorithm 1).
double adam_step(const UpdateRule& rule, double g, double& m, double& v) {
  const auto t = static_cast<double>(rule.t);
  m = rule.beta1 * m + (1 - rule.beta1) * g;
  v = rule.beta2 * v + (1 - rule.beta2) * g * g;
  const double mean = m / (1 - std::pow(rule.beta1, t));
  const double square = v / (1 - std::pow(rule.beta2, t));
  return rule.learning_rate * mean / (std::sqrt(square) + rule.epsilon);
}

}  // namespace

void ReferenceBackend::update(const UpdateRule& rule, const Tensor& gradient, double unscale,
                              Tensor& weight, std::span<Tensor> state, Tensor& delta) {
  const std::span<const double> gradients = values(gradient);
  const std::span<double> w = values(weight), change = delta ? values(delta) : w,
                          first = state.empty() ? w : values(state[0]),
                          second = state.size() < 2 ? w : values(state[1]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double g = gradients[i] * unscale + rule.weight_decay * w[i];
    double step = 0;
    switch (rule.kind) {
      case UpdateRule::Kind::sgd: step = rule.learning_rate * g; break;
      case UpdateRule::Kind::momentum:
        first[i] = rule.momentum * first[i] + g;
        step = rule.learning_rate * first[i];
        break;
      case UpdateRule::Kind::adam: step = adam_step(rule, g, first[i], second[i]); break;
    }
    w[i] -= step;
    if (delta) change[i] = -step;
  }
}

}  // namespace halfscope::sim::backend::reference
