// SPDX-License-Identifier: Apache-2.0
// The global gradient scale of NVIDIA's Caffe.
#pragma once

#include <array>
#include <cmath>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// global_grad_scale (K) and global_grad_scale_adaptive of NetParameter. Overflow is not checked.
/// The coefficient is computed at the end of an iteration; the first iteration uses
/// `initial_scale`. Adaptive: it brings the next iteration's largest scaled magnitude to about 4 K.
struct Nvcaffe {
  static constexpr Info info = {
      .name = "nvcaffe",
      .framework = "NVIDIA Caffe, global_grad_scale",
      .source = "NVIDIA/caffe src/caffe/net.cpp, src/caffe/proto/caffe.proto 87a25543",
      .quirk =
          "the first iteration is at 1 whatever K is; nothing is checked: infinities and NaN go "
          "into the weights; adaptive: a largest magnitude that is not finite counts as 0, and "
          "K follows",
      .arithmetic = Arithmetic::binary32,
      .needs = Needs::magnitude};

  double k = 1;
  bool adaptive = false;
  double initial_scale = 1;  ///< scale of the first iteration; 1 in the framework
  static constexpr auto settings() {
    return std::array{Option<Nvcaffe>{"K", &Nvcaffe::k, Range::positive},
                      Option<Nvcaffe>{"adaptive", &Nvcaffe::adaptive},
                      Option<Nvcaffe>{"initial_scale", &Nvcaffe::initial_scale, Range::positive}};
  }

  float current = 0;
  static constexpr auto state() {
    return std::array{Option<Nvcaffe>{"global_grad_scale_coeff", &Nvcaffe::current}};
  }

  Needs needs() const { return adaptive ? Needs::magnitude : Needs::nonfinite; }
  void start() { current = static_cast<float>(initial_scale); }
  double scale() const { return current; }

  Decision advance(const Attempt& attempt) {
    const float largest = static_cast<float>(attempt.max_abs);
    const bool known = !attempt.nonfinite && std::isfinite(largest) && largest > 0;
    current = static_cast<float>(k) * (adaptive && known ? 4 / largest : 1.0f);
    return {Action::apply};
  }
};

}  // namespace halfscope::policy
