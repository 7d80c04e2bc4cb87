// SPDX-License-Identifier: Apache-2.0
#include "sim/autograd/tape.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/autograd/tape_node.hpp"

namespace halfscope::sim::autograd {

using backend::Shape;
using backend::Tensor;

Tape::Tape(backend::Backend& backend, Parameters& parameters, bool training)
    : backend_(backend), parameters_(parameters), training_(training) {}
Tape::~Tape() = default;

Tensor Tape::make(const Shape& shape) {
  return backend_.make(shape, parameters_.precision().tensors);
}
Tensor Tape::allocate_uninitialized(const Shape& shape) {
  return backend_.allocate_uninitialized(shape, parameters_.precision().tensors);
}

Tape::Value Tape::record(const std::string& name, Tensor value, bool wanted, Step step) {
  if (watch_ && !name.empty()) watch_(log::Role::activation, name, value, 1);
  Node node;
  node.name = name;
  node.value = std::move(value);
  node.wanted = training_ && wanted;
  if (node.wanted) node.step = std::move(step);
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

bool Tape::wanted(Value v) const { return nodes_[v].wanted; }

const Tensor& Tape::value(Value v) const { return nodes_.at(v).value; }

Tape::Value Tape::input(const Tensor& x) { return record({}, x, false, {}); }

Tape::Value Tape::zeros(const Shape& shape) { return record({}, make(shape), false, {}); }

bool Tape::ready(Value v) const {
  const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(v);
  return std::any_of(first, first + 1 + static_cast<std::ptrdiff_t>(first->reads),
                     [](const Node& node) { return static_cast<bool>(node.gradient); });
}

Tensor Tape::scaled(const Tensor& gradient, double factor) {
  if (factor == 1) return gradient;
  Tensor result = backend_.allocate_uninitialized(gradient.shape, gradient.dtype);
  backend_.multiply(gradient, factor, result);
  return result;
}

void Tape::accumulate_gradient(Value v, Tensor gradient, double scale) {
  Node& node = nodes_[v];
  if (!node.gradient) {
    node.gradient = std::move(gradient);
    node.scale = scale;
    return;
  }
  const double common = std::min(node.scale, scale);
  Tensor sum = backend_.allocate_uninitialized(gradient.shape, gradient.dtype);
  backend_.add(scaled(node.gradient, common / node.scale), scaled(gradient, common / scale), sum);
  node.gradient = std::move(sum);
  node.scale = common;
}

void Tape::into(Parameter& parameter, double scale, const Compute& compute) {
  const bool reached = std::ranges::find(reached_, &parameter) != reached_.end();
  if (!reached) reached_.push_back(&parameter);
  if (!reached && !add_) {
    compute(parameter.gradient, false);
    parameter.gradient_scale = scale;
  } else if (parameter.gradient_scale == scale) {
    compute(parameter.gradient, true);
  } else {
    Tensor own =
        backend_.allocate_uninitialized(parameter.gradient.shape, parameter.gradient.dtype);
    compute(own, false);
    const double common = std::min(parameter.gradient_scale, scale);
    Tensor sum = backend_.allocate_uninitialized(own.shape, own.dtype);
    backend_.add(scaled(parameter.gradient, common / parameter.gradient_scale),
                 scaled(own, common / scale), sum);
    backend_.copy(sum, parameter.gradient);
    parameter.gradient_scale = common;
  }
}

void Tape::propagate_data_gradient(const std::string& name, const Node& node, const Tensor& weight,
                                   Value x, const DataGradient& compute) {
  if (!wanted(x)) return;
  const double factor = layer_scale_ ? layer_scale_(name, node.gradient, weight, node.scale) : 1;
  Tensor dx = allocate_uninitialized(value(x).shape);
  compute(scaled(node.gradient, factor), dx);
  accumulate_gradient(x, std::move(dx), node.scale * factor);
}

void Tape::cross_entropy(const std::string& name, Value logits,
                         std::span<const std::int32_t> labels, double of) {
  (void)name;  // a loss has no tensor to watch: its gradient is the gradient of the logits
  std::vector<std::int32_t> kept(labels.begin(), labels.end());
  Tensor gradient = allocate_uninitialized(value(logits).shape);
  loss_ += backend_.softmax_cross_entropy(value(logits), kept, 1 / of, gradient) / of;
  if (!training_ || !wanted(logits)) return;
  losses_.push_back([this, logits, kept = std::move(kept), of](double scale) {
    Tensor dlogits = allocate_uninitialized(value(logits).shape);
    backend_.softmax_cross_entropy(value(logits), kept, scale / of, dlogits);
    accumulate_gradient(logits, std::move(dlogits), scale);
  });
}

void Tape::smooth_l1(const std::string& name, Value x, std::span<const float> target,
                     std::span<const std::uint8_t> mask, double of) {
  (void)name;
  std::vector<float> wanted_values(target.begin(), target.end());
  std::vector<std::uint8_t> rows(mask.begin(), mask.end());
  Tensor gradient = allocate_uninitialized(value(x).shape);
  loss_ += backend_.smooth_l1(value(x), wanted_values, rows, 1 / of, gradient) / of;
  if (!training_ || !wanted(x)) return;
  losses_.push_back(
      [this, x, targets = std::move(wanted_values), rows = std::move(rows), of](double scale) {
        Tensor dx = allocate_uninitialized(value(x).shape);
        backend_.smooth_l1(value(x), targets, rows, scale / of, dx);
        accumulate_gradient(x, std::move(dx), scale);
      });
}

void Tape::backward(double scale, bool add) {
  if (!training_) throw std::logic_error("a tape that is not for training has no backward pass");
  add_ = add;
  reached_.clear();
  lstms_.clear();
  for (Node& node : nodes_) node.gradient = {};
  for (const auto& loss : losses_) loss(scale);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    if (!ready(i)) continue;
    if (watch_ && node.gradient && !node.name.empty()) {
      watch_(log::Role::activation_grad, node.name, node.gradient, node.scale);
    }
    if (!node.step) continue;  // an earlier node reads this gradient in its step
    node.step(node);
    node.gradient = {};
  }
  lstm_weight_gradients();
  report_gradients();
  lstms_.clear();
}

void Tape::report_gradients() {
  for (Parameter* parameter : parameters_.trained()) {
    const bool reached = std::ranges::find(reached_, parameter) != reached_.end();
    if (!reached && !add_) {  // the loss does not depend on it
      backend_.fill(parameter->gradient, 0);
      parameter->gradient_scale = 1;
    }
    if (watch_) {
      watch_(log::Role::weight_grad, parameter->name, parameter->gradient,
             parameter->gradient_scale);
    }
  }
  for (const auto& [name, lstm] : lstms_) {
    if (watch_) watch_(log::Role::activation_grad, name + ".gates", lstm.all_gates, lstm.scale);
  }
}

}  // namespace halfscope::sim::autograd
