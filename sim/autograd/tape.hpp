// SPDX-License-Identifier: Apache-2.0
// One forward pass, recorded so that the backward pass can walk it in reverse. Networks are written
// as calls of these functions, whatever the backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "sim/autograd/parameters.hpp"
#include "sim/backend/backend.hpp"

namespace halfscope::sim::autograd {

/// Told of every tensor as it is computed: role, name without the role, and the scale it carries.
using Watch =
    std::function<void(log::Role, const std::string&, const backend::Tensor&, double scale)>;

/// The factor by which a layer multiplies what it passes on (adaptive loss scaling): of the layer's
/// name, the gradient that arrives, its weight, and the scale that gradient carries. Empty: 1. It
/// multiplies the gradient that the data gradient is a product of, so that what would underflow in
/// that product does not; the layer's own weight gradient is without it. Convolutions and dense
/// layers ask for it.
using LayerScale = std::function<double(const std::string&, const backend::Tensor&,
                                        const backend::Tensor&, double scale)>;

class Tape {
 public:
  /// A value computed on the tape.
  using Value = std::size_t;

  Tape(backend::Backend& backend, Parameters& parameters, bool training);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  void watch(Watch watch) { watch_ = std::move(watch); }
  void scale_layers(LayerScale factor) { layer_scale_ = std::move(factor); }

  Value input(const backend::Tensor& x);
  Value conv(const std::string& name, Value x, std::int64_t channels,
             const backend::Convolution& conv, bool bias = true);
  Value dense(const std::string& name, Value x, std::int64_t features, bool bias = true);
  Value batch_norm(const std::string& name, Value x);
  Value pool(const std::string& name, Value x, const backend::Pool& pool);
  Value relu(const std::string& name, Value x);
  Value add(const std::string& name, Value a, Value b);
  Value reshape(Value x, const backend::Shape& shape);
  Value join(const std::string& name, std::span<const Value> parts);
  /// Equal parts along the second dimension of (N, A, C).
  std::vector<Value> split(Value x, std::int64_t parts);
  Value embed(const std::string& name, std::span<const std::int32_t> ids, std::int64_t rows,
              std::int64_t width);
  /// One time step; returns h, replaces `c`, which begins as zeros where it is empty. Weights are
  /// named as PyTorch's nn.LSTM names them. A Watch is told of no single step, but after the
  /// backward pass of activation_grad NAME.gates, those of all time steps, (1, T * N, 4H).
  Value lstm(const std::string& name, Value x, Value h, backend::Tensor& c, std::int64_t width);
  /// h and c before the first step.
  Value zeros(const backend::Shape& shape);

  const backend::Tensor& value(Value v) const;

  /// A loss on logits (M, K): the sum over rows over `of`. Several losses add.
  void cross_entropy(const std::string& name, Value logits, std::span<const std::int32_t> labels,
                     double of);
  void smooth_l1(const std::string& name, Value x, std::span<const float> target,
                 std::span<const std::uint8_t> mask, double of);
  double loss() const { return loss_; }  ///< unscaled

  /// Gradients of scale * loss into Parameters; added to what is there where `add`. A tensor's
  /// gradient is rounded when it is computed, and once more for each further use of its value that
  /// is added.
  void backward(double scale, bool add);

 private:
  struct Node;
  /// Computes the gradients a node gives to others from its own.
  using Step = std::function<void(Node&)>;

  backend::Tensor make(const backend::Shape& shape);  ///< zeros
  backend::Tensor room(const backend::Shape& shape);  ///< for an operation to fill
  /// The next value; `wanted`: something before it needs its gradient. An empty name is not told.
  Value record(const std::string& name, backend::Tensor value, bool wanted, Step step);
  bool wanted(Value v) const;
  /// Adds to the gradient of v. Gradients of different scales (layers have factors of their own)
  /// meet at the smaller scale, which cannot overflow.
  void accumulate_gradient(Value v, backend::Tensor gradient, double scale);
  /// `compute` writes, or adds to, the gradient of a parameter, which carries `scale`.
  using Compute = std::function<void(backend::Tensor& gradient, bool add)>;
  void into(Parameter& parameter, double scale, const Compute& compute);
  /// Gives x the data gradient, `compute(dy, dx)`, of a layer with that name.
  using DataGradient = std::function<void(const backend::Tensor& dy, backend::Tensor& dx)>;
  void pass_on(const std::string& name, const Node& node, const backend::Tensor& weight, Value x,
               const DataGradient& compute);
  backend::Tensor scaled(const backend::Tensor& gradient, double factor);
  struct Lstm;
  struct LstmWeights;
  void lstm_backward(const Lstm& of, const Node& cell, Node& h);
  void keep_gates(const Lstm& of, const backend::Tensor& dgates, double scale);
  backend::Tensor in_order(std::vector<backend::Tensor>& parts);
  void lstm_weight_gradients();
  void split_backward(Value source);
  void tell_gradients();

  /// Whether a step has a gradient to start from.
  bool ready(Value v) const;

  std::vector<Node> nodes_;
  backend::Backend& backend_;
  Parameters& parameters_;
  bool training_;
  double loss_ = 0;
  Watch watch_;
  LayerScale layer_scale_;
  std::vector<std::function<void(double scale)>> losses_;
  bool add_ = false;                                ///< of the backward pass under way
  std::vector<const Parameter*> reached_;           ///< by it
  std::map<const backend::Storage*, Value> cells_;  ///< the values of LSTMs' c
  std::map<std::string, LstmWeights> lstms_;        ///< that the backward pass under way has passed
};

}  // namespace halfscope::sim::autograd
