// SPDX-License-Identifier: Apache-2.0
// One recorded forward pass, and its backward pass. Networks are written as calls of these
// functions, independent of the backend.
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

/// Called for each tensor when it has been computed, with its role, its name without the role, and
/// the scale that it is multiplied by.
using Watch =
    std::function<void(log::Role, const std::string&, const backend::Tensor&, double scale)>;

/// Adaptive loss scaling: returns the factor by which a layer multiplies the gradient it receives
/// before it computes its data gradient, so that products there do not underflow. The layer's own
/// weight gradient is computed without the factor. Called by convolutions and dense layers with the
/// layer's name, the gradient it receives, its weight and the scale of that gradient. An empty
/// function means a factor of 1.
using LayerScale = std::function<double(const std::string&, const backend::Tensor&,
                                        const backend::Tensor&, double scale)>;

class Tape {
 public:
  /// Index of a value on the tape.
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
  /// Splits (N, A, C) into equal parts along its second dimension.
  std::vector<Value> split(Value x, std::int64_t parts);
  Value embed(const std::string& name, std::span<const std::int32_t> ids, std::int64_t rows,
              std::int64_t width);
  /// One time step: returns h and replaces `c`. An empty `c` means zeros. Weights have the names of
  /// PyTorch's nn.LSTM. The Watch is not called for single steps. It is called once after the
  /// backward pass for activation_grad NAME.gates, the gradients of all time steps, (1, T * N, 4H).
  Value lstm(const std::string& name, Value x, Value h, backend::Tensor& c, std::int64_t width);
  /// Zeros: h before the first step.
  Value zeros(const backend::Shape& shape);

  const backend::Tensor& value(Value v) const;

  /// Adds a loss on logits (M, K) to the loss of the tape: the sum over rows, divided by `of`.
  void cross_entropy(const std::string& name, Value logits, std::span<const std::int32_t> labels,
                     double of);
  void smooth_l1(const std::string& name, Value x, std::span<const float> target,
                 std::span<const std::uint8_t> mask, double of);
  double loss() const { return loss_; }  ///< unscaled

  /// Writes the gradients of scale * loss into the Parameters, or adds them if `add` is true. A
  /// tensor's gradient is rounded when it is computed, and again each time the gradient of a
  /// further use of the value is added.
  void backward(double scale, bool add);

 private:
  struct Node;
  /// Computes the gradients of a node's inputs from the node's gradient.
  using Step = std::function<void(Node&)>;

  backend::Tensor make(const backend::Shape& shape);  ///< zeros
  backend::Tensor allocate_uninitialized(
      const backend::Shape& shape);  ///< uninitialised; for results of operations
  /// Appends a value and returns its index. `wanted` is true if an input of the value needs its
  /// gradient. The Watch is not called for a value with an empty name.
  Value record(const std::string& name, backend::Tensor value, bool wanted, Step step);
  bool wanted(Value v) const;
  /// Adds to the gradient of v. If the two gradients have different scales (layers have their own
  /// factors), both are converted to the smaller scale, which cannot overflow.
  void accumulate_gradient(Value v, backend::Tensor gradient, double scale);
  /// Calls `compute` to write or add the gradient of a parameter, which is multiplied by `scale`.
  using Compute = std::function<void(backend::Tensor& gradient, bool add)>;
  void into(Parameter& parameter, double scale, const Compute& compute);
  /// Calls `compute(dy, dx)` of the layer `name` and adds dx to the gradient of x.
  using DataGradient = std::function<void(const backend::Tensor& dy, backend::Tensor& dx)>;
  void propagate_data_gradient(const std::string& name, const Node& node,
                               const backend::Tensor& weight, Value x, const DataGradient& compute);
  backend::Tensor scaled(const backend::Tensor& gradient, double factor);
  struct Lstm;
  struct LstmWeights;
  void lstm_backward(const Lstm& of, const Node& cell, Node& h);
  void keep_gates(const Lstm& of, const backend::Tensor& dgates, double scale);
  backend::Tensor in_order(std::vector<backend::Tensor>& parts);
  void lstm_weight_gradients();
  void split_backward(Value source);
  void report_gradients();

  /// Returns true if v, or a node whose gradient the step of v reads, has a gradient.
  bool ready(Value v) const;

  std::vector<Node> nodes_;
  backend::Backend& backend_;
  Parameters& parameters_;
  bool training_;
  double loss_ = 0;
  Watch watch_;
  LayerScale layer_scale_;
  std::vector<std::function<void(double scale)>> losses_;
  bool add_ = false;                       ///< argument of the current backward pass
  std::vector<const Parameter*> reached_;  ///< parameters with a gradient from the current pass
  std::map<const backend::Storage*, Value> cells_;  ///< values of the LSTMs' c, by memory
  std::map<std::string, LstmWeights> lstms_;        ///< LSTMs in the current backward pass
};

}  // namespace halfscope::sim::autograd
