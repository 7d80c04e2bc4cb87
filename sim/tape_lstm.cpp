// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "sim/tape_node.hpp"

namespace halfscope::sim {

/// One time step, for its backward pass.
struct Tape::Lstm {
  std::string name;
  Value x = 0, h_before = 0;
  Tensor c_before, gates;
  std::optional<Value> cell_before;  ///< empty before the first step
  Parameter *input = nullptr, *hidden = nullptr, *input_bias = nullptr, *hidden_bias = nullptr;
};

Tape::Value Tape::lstm(const std::string& name, Value x, Value h, Tensor& c, std::int64_t width) {
  const std::int64_t rows = value(x).shape.at(0), in = value(x).shape.at(1), four = 4 * width;
  const auto parameter = [&](const char* suffix, const Shape& shape) {
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

  Tensor from_x = make({rows, four}), from_h = make({rows, four});
  step.gates = make({rows, four});
  backend_.dense_forward(value(x), step.input->weight, step.input_bias->weight, from_x);
  backend_.dense_forward(value(h), step.hidden->weight, step.hidden_bias->weight, from_h);
  backend_.add(from_x, from_h, step.gates);
  c = backend_.make({rows, width}, Dtype::f32);
  Tensor h_after = make({rows, width});
  backend_.lstm_forward(step.gates, step.c_before, c, h_after);

  const Value cell = nodes_.size(), after = cell + 1;
  put({}, c, true, [this, step = std::move(step), after](Node& node) {
    lstm_backward(step, node, nodes_[after]);
  });
  nodes_[cell].reads = 1;
  cells_[c.storage.get()] = cell;
  return put({}, std::move(h_after), true, {});
}

void Tape::lstm_backward(const Lstm& of, const Node& cell, Node& h) {
  // The gradients of c and h carry the same scale but where a factor of a layer met one of them.
  const double scale = !h.gradient      ? cell.scale
                       : !cell.gradient ? h.scale
                                        : std::min(cell.scale, h.scale);
  Tensor dh = h.gradient ? scaled(h.gradient, scale / h.scale) : make(h.value.shape);
  h.gradient = {};
  Tensor dc = backend_.make(cell.value.shape, Dtype::f32);
  if (cell.gradient) backend_.copy(scaled(cell.gradient, scale / cell.scale), dc);
  Tensor dgates = make(of.gates.shape);
  backend_.lstm_backward(of.gates, of.c_before, cell.value, dh, dc, dgates);
  if (of.cell_before) give(*of.cell_before, std::move(dc), scale);

  const auto layer = [&](Parameter& weight, Parameter& bias, Value in) {
    into(weight, scale,
         [&](Tensor& dw, bool add) { backend_.dense_weight_gradient(value(in), dgates, dw, add); });
    into(bias, scale, [&](Tensor& db, bool add) { backend_.bias_gradient(dgates, db, add); });
    if (!wanted(in)) return;
    Tensor dx = make(value(in).shape);
    backend_.dense_data_gradient(dgates, weight.weight, dx);
    give(in, std::move(dx), scale);
  };
  layer(*of.input, *of.input_bias, of.x);
  layer(*of.hidden, *of.hidden_bias, of.h_before);
  if (!watch_) return;
  dgates.shape.insert(dgates.shape.begin(), 1);
  gates_[of.name].push_back(std::move(dgates));
  gates_scale_[of.name] = scale;
}

}  // namespace halfscope::sim
