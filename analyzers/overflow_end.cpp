// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow_end.hpp"

#include <algorithm>
#include <limits>

namespace halfscope::analyzers {

using overflow::Cause;
using overflow::OverflowEvent;

namespace {

std::int64_t last_step(const underflow::Analysis& analysis, const std::string& log) {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const underflow::TensorFindings& tensor : analysis.tensors) {
    if (tensor.log != log) continue;
    for (const underflow::StepFindings& step : tensor.per_step) last = std::max(last, step.step);
  }
  for (const auto& [of, scalars] : analysis.scalars) {
    if (of == log) last = std::max(last, scalars.step);
  }
  return last;
}

bool no_cure(const OverflowEvent& event) {
  return !event.what_if && (event.cause == Cause::nan_in_model || event.cause == Cause::at_scale_1);
}

/// Whether a log's last recorded step has infinities or NaN of the model.
bool ends_in_nan(const Study& study, const std::string& log) {
  const std::int64_t last = last_step(study.analysis, log);
  return std::ranges::any_of(study.overflow.events, [&](const OverflowEvent& event) {
    return event.log == log && !event.what_if && event.cause == Cause::nan_in_model &&
           event.last_step == last;
  });
}

}  // namespace

const OverflowEvent* lasting(const underflow::Analysis& analysis,
                             const overflow::OverflowFindings& overflow) {
  const auto lasts = [&](const OverflowEvent& event) {
    return no_cure(event) && event.last_step > event.step &&
           event.last_step == last_step(analysis, event.log);
  };
  const auto found = std::ranges::find_if(overflow.events, lasts);
  return found == overflow.events.end() ? nullptr : &*found;
}

const OverflowEvent* lasting_first(const Study& study) {
  const OverflowEvent* const end = lasting(study.analysis, study.overflow);
  const auto& model = study.advice.nan_in_model;
  return end != nullptr && model && model->step <= end->step ? nullptr : end;
}

void refuse_divergence(Study& study) {
  recommend::Recommendation& advice = study.advice;
  if (!advice.static_log2 || !advice.limited_by) return;
  // By the usual headroom: much of it, asked for, makes any scale small.
  const int usual =
      *advice.static_log2 + advice.headroom_asked - underflow::RecommendOptions().headroom_bits;
  if (!underflow::too_small(usual, ends_in_nan(study, advice.limited_by->log))) return;
  advice.static_log2.reset();
  advice.no_scale = recommend::NoScale::diverges;
  advice.above_target.clear();
  advice.flushed_at_recommended = {};
}

}  // namespace halfscope::analyzers
