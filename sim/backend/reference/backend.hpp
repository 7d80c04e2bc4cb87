// SPDX-License-Identifier: Apache-2.0
// The reference backend: every operation in binary64 with compensated sums (sums.hpp), and no
// rounding to the tensor's dtype. It shares no code with the backends it is compared with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend::reference {

struct Reals final : Storage {
  explicit Reals(std::size_t count) : values(count) {}
  std::vector<double> values;
};

/// Returns the values of a tensor of this backend. The tensor must not be empty.
std::span<double> values(const Tensor& tensor);

class ReferenceBackend final : public Backend {
 public:
  std::string describe() const override;
  Tensor make(const Shape& shape, Dtype dtype) override;
  void set(Tensor& to, std::span<const float> from) override;
  std::vector<float> get(const Tensor& from) override;
  void copy(const Tensor& from, Tensor& to) override;
  void fill(Tensor& to, float value) override;

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

  GradientFacts facts(std::span<const Tensor> gradients) override;
  void update(const UpdateRule& rule, const Tensor& gradient, double unscale, Tensor& weight,
              std::span<Tensor> state, Tensor& delta) override;
  BinadeTable count(const Tensor& tensor) override;
  Moments moments(const Tensor& tensor) override;
};

}  // namespace halfscope::sim::backend::reference
