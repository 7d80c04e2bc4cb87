// SPDX-License-Identifier: Apache-2.0
// Loss scaling in Apache MXNet. The scale is a Python float.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// mxnet.amp.LossScaler: has_overflow() first applies the previous step's decision, then decides.
struct Mxnet {
  static constexpr Info info = {
      .name = "mxnet",
      .framework = "MXNet, mxnet.amp.LossScaler",
      .source = "mxnet python/mxnet/amp/loss_scaler.py b84609d3",
      .quirk =
          "every change takes effect one step late: growth that overflows costs two steps and "
          "two halvings; no floor, though operators refuse scales below 2^-1022",
      .initial = "init_scale",
      .interval = "scale_window",
      .ceiling = "max_loss_scale"};

  double init_scale = 65536, scale_factor = 2;
  std::int64_t scale_window = 2000;
  double max_loss_scale = 16777216;
  static constexpr auto settings() {
    return std::array{Option<Mxnet>{"init_scale", &Mxnet::init_scale, Range::positive},
                      Option<Mxnet>{"scale_factor", &Mxnet::scale_factor, Range::positive},
                      Option<Mxnet>{"scale_window", &Mxnet::scale_window, Range::count},
                      Option<Mxnet>{"max_loss_scale", &Mxnet::max_loss_scale, Range::positive}};
  }

  double current = 0, next = 0;
  std::int64_t unskipped = 0;
  static constexpr auto state() {
    return std::array{Option<Mxnet>{"loss_scale", &Mxnet::current},
                      Option<Mxnet>{"next_loss_scale", &Mxnet::next},
                      Option<Mxnet>{"unskipped", &Mxnet::unskipped}};
  }

  void start() { current = next = init_scale; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    current = next;
    if (attempt.nonfinite) {
      next = current / scale_factor;
      unskipped = 0;
      return {Action::skip};
    }
    if (++unskipped == scale_window) {
      unskipped = 0;
      next = std::min(max_loss_scale, current * scale_factor);
    }
    return {Action::apply};
  }
};

/// The FAQ's SoftmaxCrossEntropyLoss(weight=128) with rescale_grad=1/128.
struct MxnetStatic {
  static constexpr Info info = {
      .name = "mxnet-static",
      .framework = "MXNet, the weight of the loss",
      .source = "mxnet docs api/faq/float16.md b84609d3",
      .quirk = "nothing is checked: infinities and NaN go into the weights",
      .needs = Needs::nothing,
      .initial = "weight"};

  double weight = 128;
  static constexpr auto settings() {
    return std::array{Option<MxnetStatic>{"weight", &MxnetStatic::weight, Range::positive}};
  }
  static constexpr auto state() { return std::array<Option<MxnetStatic>, 0>{}; }

  void start() {}
  double scale() const { return weight; }
  Decision advance(const Attempt&) { return {Action::apply}; }
};

}  // namespace halfscope::policy
