// SPDX-License-Identifier: Apache-2.0
// A backend that computes nothing: a network runs on it in no time, and what is left is which
// convolutions it asks for.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "sim/backend/backend.hpp"

namespace halfscope::test {

/// One call of a convolution: its shape, which of the three operations, and whether the result is
/// added to what is there (a bias, or a sum over microbatches).
struct ConvolutionCall {
  enum class Kind : std::uint8_t { fprop, dgrad, wgrad } kind = Kind::fprop;
  sim::backend::Convolution conv;
  sim::backend::Shape x, w;
  bool add = false;

  sim::backend::Shape y() const { return {x[0], conv.out(x[1]), conv.out(x[2]), w[0]}; }
  friend bool operator<(const ConvolutionCall& a, const ConvolutionCall& b) {
    const auto all = [](const ConvolutionCall& c) {
      return std::tie(c.x, c.w, c.conv.stride, c.conv.padding, c.kind, c.add);
    };
    return all(a) < all(b);
  }
};

class ShapeBackend final : public sim::backend::Backend {
  using Tensor = sim::backend::Tensor;
  using Kind = ConvolutionCall::Kind;

 public:
  std::set<ConvolutionCall> calls;

  std::string describe() const override { return "shapes alone"; }
  Tensor make(const sim::backend::Shape& shape, Dtype dtype) override {
    return {shape, dtype, std::make_shared<sim::backend::Storage>()};
  }
  void set(Tensor&, std::span<const float>) override {}
  std::vector<float> get(const Tensor& from) override {
    return std::vector<float>(static_cast<std::size_t>(from.size()));
  }
  void copy(const Tensor&, Tensor&) override {}
  void fill(Tensor&, float) override {}

  void conv_forward(const sim::backend::Convolution& conv, const Tensor& x, const Tensor& w,
                    const Tensor& b, Tensor&) override {
    calls.insert({Kind::fprop, conv, x.shape, w.shape, static_cast<bool>(b)});
  }
  void conv_data_gradient(const sim::backend::Convolution& conv, const Tensor&, const Tensor& w,
                          Tensor& dx) override {
    calls.insert({Kind::dgrad, conv, dx.shape, w.shape, false});
  }
  void conv_weight_gradient(const sim::backend::Convolution& conv, const Tensor& x, const Tensor&,
                            Tensor& dw, bool add) override {
    calls.insert({Kind::wgrad, conv, x.shape, dw.shape, add});
  }

  void dense_forward(const Tensor&, const Tensor&, const Tensor&, Tensor&) override {}
  void dense_data_gradient(const Tensor&, const Tensor&, Tensor&) override {}
  void dense_weight_gradient(const Tensor&, const Tensor&, Tensor&, bool) override {}
  void bias_gradient(const Tensor&, Tensor&, bool) override {}
  void batch_norm_forward(const Tensor&, sim::backend::BatchNormParameters&, bool,
                          sim::backend::BatchNormSaved&, Tensor&) override {}
  void batch_norm_backward(const Tensor&, const Tensor&, const sim::backend::BatchNormParameters&,
                           const sim::backend::BatchNormSaved&, Tensor&, Tensor&, Tensor&,
                           bool) override {}
  void pool_forward(const sim::backend::Pool&, const Tensor&, Tensor&) override {}
  void pool_backward(const sim::backend::Pool&, const Tensor&, const Tensor&, const Tensor&,
                     Tensor&) override {}
  void relu_forward(const Tensor&, Tensor&) override {}
  void relu_backward(const Tensor&, const Tensor&, Tensor&) override {}
  void add(const Tensor&, const Tensor&, Tensor&) override {}
  void multiply(const Tensor&, double, Tensor&) override {}
  void join(std::span<const Tensor>, Tensor&) override {}
  void split(const Tensor&, std::span<Tensor>) override {}
  void lstm_forward(const Tensor&, const Tensor&, Tensor&, Tensor&) override {}
  void lstm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Tensor&,
                     Tensor&) override {}
  void embed_forward(std::span<const std::int32_t>, const Tensor&, Tensor&) override {}
  void embed_backward(std::span<const std::int32_t>, const Tensor&, Tensor&, bool) override {}
  double softmax_cross_entropy(const Tensor&, std::span<const std::int32_t>, double,
                               Tensor&) override {
    return 0;
  }
  double smooth_l1(const Tensor&, std::span<const float>, std::span<const std::uint8_t>, double,
                   Tensor&) override {
    return 0;
  }
  sim::backend::GradientFacts facts(std::span<const Tensor>) override { return {}; }
  void update(const sim::backend::UpdateRule&, const Tensor&, double, Tensor&, std::span<Tensor>,
              Tensor&) override {}
  BinadeTable count(const Tensor&) override { return BinadeTable(); }
  Moments moments(const Tensor&) override { return {}; }
};

}  // namespace halfscope::test
