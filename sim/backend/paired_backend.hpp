// SPDX-License-Identifier: Apache-2.0
// A backend that computes with a first backend. While judging is on, a second backend computes
// every operation again from the first one's inputs, and both results are compared. The run
// continues with the first backend's results.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"
#include "sim/backend/operation_differences.hpp"

namespace halfscope::sim::backend {

class PairedBackend final : public Backend {
 public:
  PairedBackend(std::unique_ptr<Backend> run, std::unique_ptr<Backend> judge)
      : run_(std::move(run)), judge_(std::move(judge)) {}

  void judge(bool on) { on_ = on; }
  const OperationDifferences& differences() const { return differences_; }

  std::string describe() const override { return run_->describe(); }
  nlohmann::json details() const override;
  Tensor make(const Shape& shape, Dtype dtype) override { return run_->make(shape, dtype); }
  Tensor allocate_uninitialized(const Shape& shape, Dtype dtype) override {
    return run_->allocate_uninitialized(shape, dtype);
  }
  void set(Tensor& to, std::span<const float> values) override { run_->set(to, values); }
  std::vector<float> get(const Tensor& from) override { return run_->get(from); }
  void copy(const Tensor& from, Tensor& to) override;
  void fill(Tensor& to, float value) override { run_->fill(to, value); }

  void conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w, const Tensor& b,
                    Tensor& y) override;
  void conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                          Tensor& dx) override;
  void conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy, Tensor& dw,
                            bool add) override;
  void dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) override;
  void dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) override;
  void dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) override;
  void bias_gradient(const Tensor& dy, Tensor& db, bool add) override;
  void batch_norm_forward(const Tensor& x, BatchNormParameters& parameters, bool inference,
                          BatchNormSaved& saved, Tensor& y) override;
  void batch_norm_backward(const Tensor& x, const Tensor& dy, const BatchNormParameters& parameters,
                           const BatchNormSaved& saved, Tensor& dx, Tensor& dgamma, Tensor& dbeta,
                           bool add) override;
  void pool_forward(const Pool& pool, const Tensor& x, Tensor& y) override;
  void pool_backward(const Pool& pool, const Tensor& x, const Tensor& y, const Tensor& dy,
                     Tensor& dx) override;
  void relu_forward(const Tensor& x, Tensor& y) override;
  void relu_backward(const Tensor& y, const Tensor& dy, Tensor& dx) override;
  void add(const Tensor& a, const Tensor& b, Tensor& y) override;
  void multiply(const Tensor& x, double factor, Tensor& y) override;
  void join(std::span<const Tensor> parts, Tensor& y) override;
  void split(const Tensor& dy, std::span<Tensor> parts) override;
  void lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) override;
  void lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c, const Tensor& dh,
                     Tensor& dc, Tensor& dgates) override;
  void embed_forward(std::span<const std::int32_t> ids, const Tensor& table, Tensor& y) override;
  void embed_backward(std::span<const std::int32_t> ids, const Tensor& dy, Tensor& dtable,
                      bool add) override;
  double softmax_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels,
                               double factor, Tensor& dlogits) override;
  double smooth_l1(const Tensor& x, std::span<const float> target,
                   std::span<const std::uint8_t> mask, double factor, Tensor& dx) override;
  void update(const UpdateRule& rule, const Tensor& gradient, double unscale, Tensor& weight,
              std::span<Tensor> state, Tensor& delta) override;

  GradientFacts facts(std::span<const Tensor> gradients) override;
  Later<std::vector<GradientFacts>> facts_later(std::span<const Tensor> gradients) override;
  BinadeTable count(const Tensor& tensor) override { return run_->count(tensor); }
  Moments moments(const Tensor& tensor) override { return run_->moments(tensor); }
  Later<std::vector<TensorStatistics>> statistics_later(std::span<const Tensor> tensors) override;

 private:
  /// The tensors that an operation reads, and those that it writes (it may also read them). An
  /// empty handle is passed to both backends as an empty handle.
  using Inputs = std::vector<Tensor>;
  using Results = std::vector<Tensor*>;
  /// Calls the operation on a backend with its own tensors, in the order of Inputs and Results.
  using Compute = std::function<void(Backend&, const Inputs& in, std::vector<Tensor>& out)>;

  /// Calls `compute` on `run_` and, if judging is on, on `judge_`. Differences are collected by
  /// `name` and shapes.
  void both(const std::string& name, const Inputs& in, const Results& out, const Compute& compute);
  Tensor mirrored(const Tensor& tensor);

  std::unique_ptr<Backend> run_, judge_;
  bool on_ = false;
  OperationDifferences differences_;
};

}  // namespace halfscope::sim::backend
