// SPDX-License-Identifier: Apache-2.0
// A constant loss scale.
#pragma once

#include <array>

#include "halfscope/policy/attempt.hpp"
#include "halfscope/policy/option.hpp"

namespace halfscope::policy {

/// One scale for the whole run. Megatron's ConstantGradScaler, DeepSpeed's ZeRO and MindSpore skip
/// a step that overflows; apex, fastai and OpenSeq2Seq do not test for overflow.
struct Static {
  static constexpr Info info = {
      .name = "static",
      .framework = "any framework with a constant loss scale",
      .source = "Micikevicius et al., arXiv 1710.03740, section 3.2; 128: MXNet and MindSpore",
      .quirk = "the scale never changes, whatever overflows",
      .arithmetic = Arithmetic::binary64,
      .initial = "scale"};

  double constant = 128;
  bool skip = true;
  static constexpr auto settings() {
    return std::array{Option<Static>{"scale", &Static::constant, Range::positive},
                      Option<Static>{"skip", &Static::skip}};
  }
  static constexpr std::array<Option<Static>, 0> state() { return {}; }

  void start() {}
  double scale() const { return constant; }

  Decision advance(const Attempt& attempt) const {
    return {attempt.nonfinite && skip ? Action::skip : Action::apply};
  }
};

}  // namespace halfscope::policy
