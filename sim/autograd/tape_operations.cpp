// SPDX-License-Identifier: Apache-2.0
// Operations without weights.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "sim/autograd/tape_node.hpp"

namespace halfscope::sim::autograd {

using backend::Shape;
using backend::Tensor;

Tape::Value Tape::pool(const std::string& name, Value x, const backend::Pool& pool) {
  const Shape in = value(x).shape;
  Tensor y = allocate_uninitialized({in.at(0), pool.out(in.at(1)), pool.out(in.at(2)), in.at(3)});
  backend_.pool_forward(pool, value(x), y);
  return record(name, std::move(y), wanted(x), [this, x, pool](Node& node) {
    Tensor dx = allocate_uninitialized(value(x).shape);
    backend_.pool_backward(pool, value(x), node.value, node.gradient, dx);
    accumulate_gradient(x, std::move(dx), node.scale);
  });
}

Tape::Value Tape::relu(const std::string& name, Value x) {
  Tensor y = allocate_uninitialized(value(x).shape);
  backend_.relu_forward(value(x), y);
  return record(name, std::move(y), wanted(x), [this, x](Node& node) {
    Tensor dx = allocate_uninitialized(value(x).shape);
    backend_.relu_backward(node.value, node.gradient, dx);
    accumulate_gradient(x, std::move(dx), node.scale);
  });
}

Tape::Value Tape::add(const std::string& name, Value a, Value b) {
  if (value(a).shape != value(b).shape) throw std::invalid_argument("add: shapes differ");
  Tensor y = allocate_uninitialized(value(a).shape);
  backend_.add(value(a), value(b), y);
  return record(name, std::move(y), wanted(a) || wanted(b), [this, a, b](Node& node) {
    if (wanted(a)) accumulate_gradient(a, node.gradient, node.scale);
    if (wanted(b)) accumulate_gradient(b, node.gradient, node.scale);
  });
}

Tape::Value Tape::reshape(Value x, const Shape& shape) {
  Tensor y = value(x);
  if (backend::elements(shape) != y.size()) {
    throw std::invalid_argument("reshape: another number of values");
  }
  y.shape = shape;
  return record({}, std::move(y), wanted(x), [this, x](Node& node) {
    Tensor dx = node.gradient;
    dx.shape = value(x).shape;
    accumulate_gradient(x, std::move(dx), node.scale);
  });
}

Tape::Value Tape::join(const std::string& name, std::span<const Value> parts) {
  std::vector<Tensor> values;
  bool any = false;
  Shape shape = value(parts.front()).shape;
  shape.at(1) = 0;
  for (const Value part : parts) {
    values.push_back(value(part));
    shape[1] += value(part).shape.at(1);
    any = any || wanted(part);
  }
  Tensor y = allocate_uninitialized(shape);
  backend_.join(values, y);
  std::vector<Value> kept(parts.begin(), parts.end());
  return record(name, std::move(y), any, [this, kept = std::move(kept)](Node& node) {
    std::vector<Tensor> gradients;
    for (const Value part : kept) gradients.push_back(allocate_uninitialized(value(part).shape));
    backend_.split(node.gradient, gradients);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (wanted(kept[i])) accumulate_gradient(kept[i], std::move(gradients[i]), node.scale);
    }
  });
}

std::vector<Tape::Value> Tape::split(Value x, std::int64_t parts) {
  Shape shape = value(x).shape;
  if (shape.at(1) % parts != 0) throw std::invalid_argument("split: parts are not equal");
  shape[1] /= parts;
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < parts; ++i) tensors.push_back(allocate_uninitialized(shape));
  backend_.split(value(x), tensors);
  const Value source = nodes_.size();
  record({}, value(x), wanted(x), [this, source, x](Node&) {
    split_backward(source);
    accumulate_gradient(x, nodes_[source].gradient, nodes_[source].scale);
  });
  nodes_[source].reads = static_cast<std::size_t>(parts);
  std::vector<Value> values;
  for (Tensor& tensor : tensors) {
    values.push_back(record({}, std::move(tensor), wanted(x), {}));
  }
  return values;
}

void Tape::split_backward(Value source) {
  Node& node = nodes_[source];
  const auto parts = std::span(nodes_).subspan(source + 1, node.reads);
  node.scale = 0;
  for (const Node& part : parts) {
    if (part.gradient) node.scale = node.scale == 0 ? part.scale : std::min(node.scale, part.scale);
  }
  std::vector<Tensor> gradients;
  for (Node& part : parts) {
    gradients.push_back(part.gradient ? scaled(part.gradient, node.scale / part.scale)
                                      : make(part.value.shape));
    part.gradient = {};
  }
  node.gradient = allocate_uninitialized(node.value.shape);
  backend_.join(gradients, node.gradient);
}

}  // namespace halfscope::sim::autograd
