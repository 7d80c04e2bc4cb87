// SPDX-License-Identifier: Apache-2.0
// The layers that have weights, except the LSTM. Initial weights are distributed as PyTorch's.
#include <stdexcept>
#include <utility>

#include "sim/autograd/tape_node.hpp"

namespace halfscope::sim::autograd {

using backend::Tensor;

Tape::Value Tape::conv(const std::string& name, Value x, std::int64_t channels,
                       const backend::Convolution& conv, bool bias) {
  const backend::Shape in = value(x).shape;  // N, H, W, C
  const std::int64_t fan_in = in.at(3) * conv.kernel * conv.kernel;
  Parameter& weight = parameters_.at(name + ".weight", {channels, conv.kernel, conv.kernel, in[3]},
                                     Initial::kaiming_uniform, fan_in);
  Parameter* const shift =
      bias ? &parameters_.at(name + ".bias", {channels}, Initial::uniform_fan_in, fan_in) : nullptr;
  Tensor y = allocate_uninitialized({in[0], conv.out(in[1]), conv.out(in[2]), channels});
  backend_.conv_forward(conv, value(x), weight.weight, shift ? shift->weight : Tensor{}, y);
  return record(name, std::move(y), true, [this, name, x, conv, &weight, shift](Node& node) {
    const Tensor& dy = node.gradient;
    into(weight, node.scale,
         [&](Tensor& dw, bool add) { backend_.conv_weight_gradient(conv, value(x), dy, dw, add); });
    if (shift) {
      into(*shift, node.scale, [&](Tensor& db, bool add) { backend_.bias_gradient(dy, db, add); });
    }
    propagate_data_gradient(name, node, weight.weight, x, [&](const Tensor& arrived, Tensor& dx) {
      backend_.conv_data_gradient(conv, arrived, weight.weight, dx);
    });
  });
}

Tape::Value Tape::dense(const std::string& name, Value x, std::int64_t features, bool bias) {
  const std::int64_t rows = value(x).shape.at(0);
  const std::int64_t fan_in = value(x).size() / rows;
  Parameter& weight =
      parameters_.at(name + ".weight", {features, fan_in}, Initial::kaiming_uniform, fan_in);
  Parameter* const shift =
      bias ? &parameters_.at(name + ".bias", {features}, Initial::uniform_fan_in, fan_in) : nullptr;
  Tensor y = allocate_uninitialized({rows, features});
  backend_.dense_forward(value(x), weight.weight, shift ? shift->weight : Tensor{}, y);
  return record(name, std::move(y), true, [this, name, x, &weight, shift](Node& node) {
    const Tensor& dy = node.gradient;
    into(weight, node.scale,
         [&](Tensor& dw, bool add) { backend_.dense_weight_gradient(value(x), dy, dw, add); });
    if (shift) {
      into(*shift, node.scale, [&](Tensor& db, bool add) { backend_.bias_gradient(dy, db, add); });
    }
    propagate_data_gradient(name, node, weight.weight, x, [&](const Tensor& arrived, Tensor& dx) {
      backend_.dense_data_gradient(arrived, weight.weight, dx);
    });
  });
}

Tape::Value Tape::batch_norm(const std::string& name, Value x) {
  const std::int64_t channels = value(x).shape.back();
  Parameter& gamma = parameters_.at(name + ".weight", {channels}, Initial::ones, 1, true);
  Parameter& beta = parameters_.at(name + ".bias", {channels}, Initial::zeros, 1, true);
  backend::BatchNormParameters layer;
  layer.gamma = gamma.weight;
  layer.beta = beta.weight;
  layer.running_mean =
      parameters_.statistic(name + ".running_mean", {channels}, Initial::zeros).weight;
  layer.running_variance =
      parameters_.statistic(name + ".running_var", {channels}, Initial::ones).weight;
  backend::BatchNormSaved saved{backend_.allocate_uninitialized({channels}, Dtype::f32),
                                backend_.allocate_uninitialized({channels}, Dtype::f32)};
  Tensor y = allocate_uninitialized(value(x).shape);
  backend_.batch_norm_forward(value(x), layer, !training_, saved, y);
  return record(name, std::move(y), true, [this, x, layer, saved, &gamma, &beta](Node& node) {
    Tensor dx = allocate_uninitialized(value(x).shape);
    // One operation computes both gradients. Both have always the same state, so `add` is equal.
    into(gamma, node.scale, [&](Tensor& dgamma, bool add) {
      into(beta, node.scale, [&](Tensor& dbeta, bool) {
        backend_.batch_norm_backward(value(x), node.gradient, layer, saved, dx, dgamma, dbeta, add);
      });
    });
    if (wanted(x)) accumulate_gradient(x, std::move(dx), node.scale);
  });
}

Tape::Value Tape::embed(const std::string& name, std::span<const std::int32_t> ids,
                        std::int64_t rows, std::int64_t width) {
  Parameter& table = parameters_.at(name + ".weight", {rows, width}, Initial::normal, 1);
  std::vector<std::int32_t> kept(ids.begin(), ids.end());
  Tensor y = allocate_uninitialized({static_cast<std::int64_t>(kept.size()), width});
  backend_.embed_forward(kept, table.weight, y);
  return record(name, std::move(y), true, [this, kept = std::move(kept), &table](Node& node) {
    into(table, node.scale, [&](Tensor& gradient, bool add) {
      backend_.embed_backward(kept, node.gradient, gradient, add);
    });
  });
}

}  // namespace halfscope::sim::autograd
