// SPDX-License-Identifier: Apache-2.0
// fastai: MixedPrecision of version 1, and of version 2 before it wrapped torch's scaler.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

struct Fastai1 {
  static constexpr Info info = {
      .name = "fastai1",
      .framework = "fastai v1, MixedPrecision",
      .source = "fastai1 fastai/callbacks/fp16.py 15bc02c6",
      .quirk =
          "at a scale of 1 or below an overflow is not skipped: infinity or NaN goes into the "
          "weights and counts as a clean step; a static scale is never checked",
      .arithmetic = Arithmetic::binary64,
      .initial = "loss_scale",
      .interval = "max_noskip",
      .ceiling = "max_scale"};

  double loss_scale = 65536;  ///< None in the framework: 2^16, or 512 if static
  std::int64_t max_noskip = 1000;
  bool dynamic = true;
  double max_scale = 0x1p24;
  static constexpr auto settings() {
    return std::array{Option<Fastai1>{"loss_scale", &Fastai1::loss_scale, Range::positive},
                      Option<Fastai1>{"max_noskip", &Fastai1::max_noskip, Range::count},
                      Option<Fastai1>{"dynamic", &Fastai1::dynamic},
                      Option<Fastai1>{"max_scale", &Fastai1::max_scale, Range::positive}};
  }
  bool scale_given = false;
  void given(std::string_view key) { scale_given = scale_given || key == "loss_scale"; }

  double current = 0;
  std::int64_t noskip = 0;
  static constexpr auto state() {
    return std::array{Option<Fastai1>{"loss_scale", &Fastai1::current},
                      Option<Fastai1>{"noskip", &Fastai1::noskip}};
  }

  void start() {
    if (!scale_given) loss_scale = dynamic ? 65536 : 512;
    current = loss_scale;
  }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (!dynamic) return {Action::apply};
    if (attempt.nonfinite && current > 1) {
      current /= 2;
      noskip = 0;
      return {Action::skip};  // the master weights receive no gradient
    }
    if (++noskip >= max_noskip && current < max_scale) {
      current *= 2;
      noskip = 0;
    }
    return {Action::apply};
  }
};

struct Fastai2 {
  static constexpr Info info = {
      .name = "fastai2",
      .framework = "fastai v2 up to 2.0, MixedPrecision (non-native)",
      .source = "fastai fastai/callback/fp16.py 00a6a6a7",
      .quirk =
          "an overflow does not restart growth; max_loss_scale is only where the scale "
          "starts, there is neither cap nor floor; a static scale is never checked",
      .arithmetic = Arithmetic::binary64,
      .initial = "max_loss_scale",
      .interval = "scale_wait"};

  double loss_scale = 512;  ///< static scale, used if `dynamic` is false
  bool dynamic = true;
  double max_loss_scale = 0x1p24, div_factor = 2;
  std::int64_t scale_wait = 500;
  static constexpr auto settings() {
    return std::array{Option<Fastai2>{"loss_scale", &Fastai2::loss_scale, Range::positive},
                      Option<Fastai2>{"dynamic", &Fastai2::dynamic},
                      Option<Fastai2>{"max_loss_scale", &Fastai2::max_loss_scale, Range::positive},
                      Option<Fastai2>{"div_factor", &Fastai2::div_factor, Range::positive},
                      Option<Fastai2>{"scale_wait", &Fastai2::scale_wait, Range::count}};
  }

  double current = 0;
  std::int64_t count = 0;
  static constexpr auto state() {
    return std::array{Option<Fastai2>{"loss_scale", &Fastai2::current},
                      Option<Fastai2>{"count", &Fastai2::count}};
  }

  void start() { current = dynamic ? max_loss_scale : loss_scale; }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    if (!dynamic) return {Action::apply};
    if (attempt.nonfinite) {
      current /= div_factor;
      return {Action::skip};
    }
    if (++count == scale_wait) {
      count = 0;
      current *= div_factor;
    }
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
