// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/autograd/tape_node.hpp"

namespace halfscope::sim::autograd {

using backend::Tensor;

Tape::Value Tape::lstm(const std::string& name, Value x, Value h, Tensor& c, std::int64_t width) {
  const std::int64_t rows = value(x).shape.at(0), in = value(x).shape.at(1), four = 4 * width;
  const auto parameter = [&](const char* suffix, const backend::Shape& shape) {
    return &parameters_.at(name + suffix, shape, Initial::uniform_fan_in, width);
  };
  Lstm step;
  step.name = name;
  step.x = x;
  step.h_before = h;
  step.c_before = c;
  step.input = parameter(".weight_ih_l0", {four, in});
  step.hidden = parameter(".weight_hh_l0", {four, width});
  step.input_bias = parameter(".bias_ih_l0", {four});
  step.hidden_bias = parameter(".bias_hh_l0", {four});
  if (!step.c_before) step.c_before = backend_.make({rows, width}, Dtype::f32);
  if (const auto found = cells_.find(c.storage.get()); c && found != cells_.end()) {
    step.cell_before = found->second;
  }

  Tensor from_x = allocate_uninitialized({rows, four}),
         from_h = allocate_uninitialized({rows, four});
  step.gates = allocate_uninitialized({rows, four});
  backend_.dense_forward(value(x), step.input->weight, step.input_bias->weight, from_x);
  backend_.dense_forward(value(h), step.hidden->weight, step.hidden_bias->weight, from_h);
  backend_.add(from_x, from_h, step.gates);
  c = backend_.allocate_uninitialized({rows, width}, Dtype::f32);
  Tensor h_after = allocate_uninitialized({rows, width});
  backend_.lstm_forward(step.gates, step.c_before, c, h_after);

  const Value cell = nodes_.size(), after = cell + 1;
  record({}, c, true, [this, step = std::move(step), after](Node& node) {
    lstm_backward(step, node, nodes_[after]);
  });
  nodes_[cell].reads = 1;
  cells_[c.storage.get()] = cell;
  return record({}, std::move(h_after), true, {});
}

void Tape::lstm_backward(const Lstm& of, const Node& cell, Node& h) {
  // The gradients of c and h have the same scale unless a layer's factor changed one of them.
  const double scale = !h.gradient      ? cell.scale
                       : !cell.gradient ? h.scale
                                        : std::min(cell.scale, h.scale);
  Tensor dh = h.gradient ? scaled(h.gradient, scale / h.scale) : make(h.value.shape);
  h.gradient = {};
  Tensor dc = backend_.make(cell.value.shape, Dtype::f32);
  if (cell.gradient) backend_.copy(scaled(cell.gradient, scale / cell.scale), dc);
  Tensor dgates = allocate_uninitialized(of.gates.shape);
  backend_.lstm_backward(of.gates, of.c_before, cell.value, dh, dc, dgates);
  if (of.cell_before) accumulate_gradient(*of.cell_before, std::move(dc), scale);

  const auto propagate_data_gradient = [&](const Parameter& weight, Value in) {
    if (!wanted(in)) return;
    Tensor dx = allocate_uninitialized(value(in).shape);
    backend_.dense_data_gradient(dgates, weight.weight, dx);
    accumulate_gradient(in, std::move(dx), scale);
  };
  propagate_data_gradient(*of.input, of.x);
  propagate_data_gradient(*of.hidden, of.h_before);
  keep_gates(of, dgates, scale);
}

void Tape::keep_gates(const Lstm& of, const Tensor& dgates, double scale) {
  const auto as_part = [](Tensor tensor) {
    tensor.shape.insert(tensor.shape.begin(), 1);
    return tensor;
  };
  LstmWeights& all = lstms_[of.name];
  const double common = all.gates.empty() ? scale : std::min(all.scale, scale);
  for (Tensor& part : all.gates) part = scaled(part, common / all.scale);
  all.scale = common;
  all.of = of;
  all.gates.push_back(as_part(scaled(dgates, common / scale)));
  all.inputs.push_back(as_part(value(of.x)));
  all.hidden.push_back(as_part(value(of.h_before)));
}

/// Returns the parts, whose last time step is first, as one tensor (1, T * N, C) in order of time.
Tensor Tape::in_order(std::vector<Tensor>& parts) {
  std::ranges::reverse(parts);
  backend::Shape shape = parts.front().shape;
  shape[1] *= static_cast<std::int64_t>(parts.size());
  Tensor all = allocate_uninitialized(shape);
  backend_.join(parts, all);
  return all;
}

/// Computes the weight gradients as one product over all time steps, as cuDNN does: one rounding.
void Tape::lstm_weight_gradients() {
  for (auto& entry : lstms_) {
    auto& lstm = entry.second;  // a lambda in clang 14 cannot capture a structured binding
    lstm.all_gates = in_order(lstm.gates);
    const auto layer = [&](Parameter& weight, Parameter& bias, std::vector<Tensor>& parts) {
      const auto rows = [](Tensor tensor) {
        tensor.shape.erase(tensor.shape.begin());
        return tensor;
      };
      const Tensor in = rows(in_order(parts)), dgates = rows(lstm.all_gates);
      into(weight, lstm.scale,
           [&](Tensor& dw, bool add) { backend_.dense_weight_gradient(in, dgates, dw, add); });
      into(bias, lstm.scale,
           [&](Tensor& db, bool add) { backend_.bias_gradient(dgates, db, add); });
    };
    layer(*lstm.of.input, *lstm.of.input_bias, lstm.inputs);
    layer(*lstm.of.hidden, *lstm.of.hidden_bias, lstm.hidden);
  }
}

}  // namespace halfscope::sim::autograd
