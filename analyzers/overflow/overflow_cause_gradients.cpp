// SPDX-License-Identifier: Apache-2.0
// Judges why gradients are infinite or NaN: docs/numerics/statistics.md, "Infinities in gradients".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/overflow/overflow_parts.hpp"

namespace halfscope::analyzers::overflow {
namespace {

std::string steps_text(const std::vector<std::int64_t>& steps) {
  return fmt::format("{} {}", steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", "));
}

/// Returns the binades between the largest finite gradient nearby (else 65520) and overflow at a
/// scale.
double room_at(double scale, const Neighbours& near) {
  const double limit = std::log2(to_double(boundaries(kBinary16).overflow));
  return limit - (near.largest ? std::log2(*near.largest) : limit) - std::log2(scale);
}

/// Returns true if the scale fell far in vain, while finite steps nearby have much headroom.
bool cured_by_none(const ScaleSpan& span, const Neighbours& near) {
  return room_at(span.least, near) >= kOutOfReach &&
         std::log2(span.most) - std::log2(span.least) >= kLowered;
}

/// Writes powers of two with many digits as 2^k.
std::string written(double scale) {
  const std::optional<int> log2 = exact_log2(scale);
  return log2 && std::abs(*log2) > 20 ? fmt::format("2^{}", *log2) : fmt::format("{}", scale);
}

std::string scales_text(const ScaleSpan& span) {
  if (span.least == span.most) return fmt::format("at loss scale {}", written(span.least));
  return fmt::format(
      "at loss scale {}, and those of the steps after it infinities or NaN at scales down to {}",
      written(span.first), written(span.least));
}

std::string far_text(const First& first, const ScaleSpan& span, const Neighbours& near) {
  const std::string held =
      fmt::format("the gradients of step {} hold {} {}", first.at, first.held, scales_text(span));
  return near.largest ? fmt::format(
                            "{}, although at {} they reach at most {:.3g} unscaled, {:.1f} binades "
                            "below overflow at {}",
                            held, steps_text(near.steps), *near.largest, room_at(span.least, near),
                            written(span.least))
                      : fmt::format("{}, where {:.3g} is the least that overflows", held,
                                    underflow::infinite_magnitude(span.least).unscaled());
}

/// Judges infinities far above the gradients of other steps; empty if they are not far above.
std::optional<Judgement> judge_far(const LogView& view, const First& first, const ScaleSpan& span,
                                   const Neighbours& near) {
  if (!(room_at(span.least, near) >= kFar)) return std::nullopt;
  const std::string evidence = far_text(first, span, near);
  if (!cured_by_none(span, near)) {
    return Judgement{
        Cause::undetermined,
        fmt::format("{}. A rare large gradient and {} that no scale caused look the same; record "
                    "the step's gradients in FP32 or at a much lower scale to tell them apart",
                    evidence, first.inf ? "an infinity" : "NaN")};
  }
  Judgement judgement{Cause::nan_in_model,
                      evidence +
                          ": lowering the scale does not cure it, the backward pass makes it (for "
                          "example by dividing by zero)"};
  if (!forward_known(view, first.at)) {
    judgement = {Cause::undetermined,
                 evidence +
                     ": lowering the scale does not cure it. The forward pass may overflow: "
                     "neither its loss nor its activations are recorded"};
  }
  judgement.not_scale_related = true;
  return judgement;
}

/// For gradients in a recorded format wider than FP16 that come close to FP16's limit at the run's
/// scale: a cast to FP16 in the training code may have made the infinities.
Judgement may_be_cast(const First& first, const ScaleSpan& span, const Neighbours& near) {
  return {Cause::undetermined,
          fmt::format(
              "the gradient holds {} at step {} and is recorded as not computed in FP16, but "
              "at {} gradients reach {:.3g} at its loss scale {}: near 65520, where a cast to "
              "FP16 by hand makes infinities. If there is one, a smaller loss scale helps; if "
              "not, the model makes them",
              first.held, first.at, steps_text(near.steps), *near.largest * span.most, span.most)};
}

/// Returns true if no FP16 gradient can have been an input of a wide one: the run has none, or the
/// incoming gradient is recorded. That one is finite, since it is computed earlier.
bool isolated(const LogView& view, const Run& run, std::int64_t step) {
  if (view.formats.all_wide()) return true;
  if (!run.first().tensor) return false;
  const auto incoming = view.order().incoming_gradient(*run.first().tensor);
  return incoming && view.tensor(*incoming).per_step.contains(step);
}

/// Infinities in wide gradients come from the model, unless a cast or an FP16 gradient that is not
/// recorded may have caused them.
Judgement judge_wide_gradient(const LogView& view, const Run& run, const First& first) {
  const std::optional<ScaleSpan> span = scale_span(view, run);
  const Neighbours near = neighbours(view, run);
  const bool curable = span && !cured_by_none(*span, near);
  if (curable && near.largest && room_at(span->most, near) <= kNearLimit) {
    Judgement cast = may_be_cast(first, *span, near);
    cast.maybe_rounded = true;
    return cast;
  }
  if (isolated(view, run, first.at)) {
    return {Cause::nan_in_model, fmt::format("the gradient holds {} at step {} although it is not "
                                             "computed in FP16 and its inputs are finite",
                                             first.held, first.at)};
  }
  if (span && !curable) return *judge_far(view, first, *span, near);
  Judgement unknown{
      Cause::undetermined,
      fmt::format("the gradient is not computed in FP16 itself, but {}, and the one "
                  "that came into it at step {} is not recorded (activation_grad)",
                  view.any_narrow ? "others of the run are" : "those of activations may have been",
                  first.at)};
  unknown.maybe_rounded = curable && span->most > 1;
  return unknown;
}

/// The scale does not cause infinities at scale 1 or less. NaN alone may also be an overflow,
/// unless it lasts.
Judgement judge_unscaled(const First& first, std::int64_t step, double scale, bool lasts) {
  if (first.inf) {
    return {Cause::at_scale_1,
            fmt::format("gradients overflow at step {} even at loss scale {}: they reach {:.4g} "
                        "themselves. Keep this tensor in FP32 or BF16",
                        step, scale, underflow::infinite_magnitude(scale).unscaled())};
  }
  return {lasts ? Cause::nan_in_model : Cause::undetermined,
          fmt::format("gradients are NaN at step {} even at loss scale {}, and none of them is "
                      "infinite",
                      step, scale)};
}

/// Judges FP16 gradients at a scale above 1, after a finite forward pass, by the other steps.
Judgement judge_scaled(const LogView& view, const First& first, const ScaleSpan& span,
                       const Neighbours& near) {
  const std::string at = fmt::format("at loss scale {} the gradients of step {} hold {}",
                                     span.first, first.at, first.held);
  if (!near.largest) {
    return {Cause::undetermined,
            fmt::format("{}, and no other step has finite gradients to estimate their "
                        "magnitude by",
                        at)};
  }
  const bool infinity_somewhere = first.inf || any_infinite_gradient(view, first.at);
  if (!infinity_somewhere && !near.held_at_smaller_scale) {
    return {Cause::undetermined,
            fmt::format("{} without an infinity, and no step right after has finite "
                        "gradients at a smaller scale",
                        at)};
  }
  const int by_magnitude =
      underflow::StepMagnitude{magnitude_of(*near.largest)}.highest_safe_log2(kBinary16);
  const std::string evidence =
      fmt::format("{}, while {} is finite; at {} gradients reach at most {:.3g} unscaled", at,
                  forward_text(view, first.at), steps_text(near.steps), *near.largest);
  if (by_magnitude < 0) {
    return {Cause::at_scale_1, evidence +
                                   ", which overflows too. Only a scale below 1, FP32 or BF16 "
                                   "helps"};
  }
  const int safe = std::min(by_magnitude, below(span.least));
  return {Cause::by_scale, evidence, safe, true};
}

}  // namespace

Judgement judge_gradient(const LogView& view, const Run& run, const First& first) {
  if (!first.narrow) return not_recorded_dtype(first);
  if (!*first.narrow) return judge_wide_gradient(view, run, first);
  const std::optional<ScaleSpan> span = scale_span(view, run);
  if (!span) {
    return {Cause::undetermined,
            fmt::format("the gradients of step {} hold {}, but the loss scale they carry "
                        "is not recorded; --recorded-scale S gives it",
                        first.at, first.held)};
  }
  const Neighbours near = neighbours(view, run);
  const bool lasts = run.steps.size() > 1 && run.last_step() == view.last_step;
  if (first.inf || span->least > 1 || !lasts) {
    if (auto far = judge_far(view, first, *span, near)) return *far;
  }
  if (span->least <= 1) return judge_unscaled(first, span->least_at, span->least, lasts);
  if (!forward_known(view, first.at)) {
    return {Cause::undetermined,
            fmt::format("the gradients of step {} hold {} at loss scale {}, but neither its "
                        "loss nor its activations are recorded",
                        first.at, first.held, span->first)};
  }
  return judge_scaled(view, first, *span, near);
}

}  // namespace halfscope::analyzers::overflow
