// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow_cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/overflow_evidence.hpp"

namespace halfscope::analyzers {
namespace {

using log::Role;

/// A sentence: a capital first, a full stop last.
Judgement as_sentence(Judgement judgement) {
  std::string& why = judgement.why;
  if (why.empty()) return judgement;
  if (why.front() >= 'a' && why.front() <= 'z')
    why.front() = static_cast<char>(why.front() - 'a' + 'A');
  if (why.back() != '.') why += '.';
  return judgement;
}

/// The first marked values: what they are and hold.
struct First {
  const TensorFindings* tensor = nullptr;  ///< null: known by scalars alone
  const StepFindings* step = nullptr;
  Role role = Role::unknown;
  std::int64_t at = 0;
  bool nan = false, inf = false;
  std::string held;            ///< "3 infinities and 1 NaN"
  std::optional<bool> narrow;  ///< computed in a format of binary16's range; empty: not known
};

/// What a role was computed in, where only scalars show it. A loss comes from activations.
std::optional<bool> narrow_role(const LogView& view, Role role) {
  if (const auto known = view.narrow(role)) return known;
  if (role == Role::loss) return view.narrow(Role::activation);
  return view.narrow(role == Role::weight_grad ? Role::activation_grad : Role::weight_grad);
}

/// The loss's own format, by its table or the manifest.
std::optional<bool> narrow_loss(const LogView& view) {
  if (const auto known = view.narrow(Role::loss)) return known;
  for (const auto& [log, manifest] : view.analysis.manifests) {
    if (log == view.log && manifest.loss_dtype) {
      return format_of(*manifest.loss_dtype).emax <= kBinary16.emax;
    }
  }
  return std::nullopt;
}

std::string held_text(const Counts& counts) {
  const auto some = [](std::uint64_t n, std::string_view one, std::string_view more) {
    return fmt::format("{} {}", n, n == 1 ? one : more);
  };
  std::string text;
  if (counts.inf != 0) text = some(counts.inf, "infinity", "infinities");
  if (counts.nan != 0) text += (text.empty() ? "" : " and ") + some(counts.nan, "NaN", "NaN");
  return text;
}

First first_of(const LogView& view, const Run& run) {
  First first;
  const Mark& mark = run.first();
  first.role = mark.role;
  first.at = run.first_step();
  if (!mark.tensor) {
    first.nan = std::isnan(mark.scalar);
    first.inf = !first.nan;
    first.held = first.nan          ? "NaN"
                 : mark.scalar != 0 ? "an infinity"
                                    : "an infinity or NaN (found_inf)";
    first.narrow = narrow_role(view, mark.role);
    return first;
  }
  first.tensor = &view.tensor(*mark.tensor);
  first.step = find_step(*first.tensor, first.at);
  first.nan = first.step->counts.nan != 0;
  first.inf = first.step->counts.inf != 0;
  first.held = held_text(first.step->counts);
  first.narrow = computed_narrow(*first.tensor);
  return first;
}

Judgement judge_weights(const First& first) {
  if (first.inf && *first.narrow) {
    return {Cause::at_scale_1,
            fmt::format("the weights hold {} before step {} begins: they overflow in {}. Keep them "
                        "in FP32 or BF16",
                        first.held, first.at, name_of(first.tensor->source_dtype))};
  }
  return {Cause::nan_in_model,
          fmt::format("the weights hold {} before step {} begins, with no sign of trouble in the "
                      "recorded step before",
                      first.held, first.at)};
}

Judgement not_recorded_dtype(const First& first) {
  return {Cause::undetermined,
          fmt::format("step {} holds {} in role {}, and what that is computed in is not "
                      "recorded: its tables tell",
                      first.at, first.held, name_of(first.role))};
}

/// A loss that only a scalar shows: the activations tell whether an infinity came in.
Judgement judge_loss_scalar(const LogView& view, const First& first) {
  const std::string_view is = first.nan ? "NaN" : "infinite";
  if (*first.narrow && !has_role(view, Role::activation, first.at)) {
    return {Cause::undetermined,
            fmt::format("the loss of step {} is {}, but that step's activations are not "
                        "recorded; record tables of activations at it",
                        first.at, is)};
  }
  const std::optional<bool> narrow = narrow_loss(view);
  if (first.inf && *first.narrow && !narrow) {
    return {Cause::undetermined,
            fmt::format("the loss of step {} is infinite, the activations are finite, and "
                        "what the loss is computed in is not recorded (loss_dtype)",
                        first.at)};
  }
  if (first.inf && narrow.value_or(false)) {
    return {
        Cause::at_scale_1,
        fmt::format("the loss of step {} is infinite while every recorded activation is finite: "
                    "it overflows in FP16. Compute it in FP32",
                    first.at)};
  }
  return {Cause::nan_in_model,
          fmt::format("the loss of step {} is {}, and no recorded activation that was computed in "
                      "FP16 is infinite",
                      first.at, is)};
}

Judgement judge_forward(const LogView& view, const First& first) {
  if (!first.narrow) return not_recorded_dtype(first);
  if (first.tensor == nullptr) return judge_loss_scalar(view, first);
  if (!*first.narrow) {
    return {Cause::nan_in_model,
            fmt::format("the forward pass of step {} makes {} although this tensor is not computed "
                        "in FP16, and nothing recorded before it in that step is infinite",
                        first.at, first.held)};
  }
  if (!first.inf) {
    return {Cause::nan_in_model,
            fmt::format("the forward pass of step {} makes {}, and nothing recorded before it in "
                        "that step is infinite",
                        first.at, first.held)};
  }
  return {Cause::at_scale_1,
          fmt::format("the forward pass of step {} makes {}: it reaches 65520 in FP16. Keep "
                      "this tensor in FP32 or BF16",
                      first.at, first.held)};
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  return fmt::format("{} {}", steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", "));
}

double binades_below_overflow(double magnitude) {
  return std::log2(to_double(boundaries(kBinary16).overflow)) - std::log2(magnitude);
}

/// Gradients recorded as wide that come close to what FP16 holds at the run's scale, and infinities
/// next to them: then a cast to FP16 by hand may have made these.
std::optional<Judgement> judge_cast(const LogView& view, const Run& run, const First& first) {
  const std::optional<ScaleSpan> span = scale_span(view, run);
  const Neighbours near = neighbours(view, run);
  if (!span || !near.largest) return std::nullopt;
  const double room = binades_below_overflow(*near.largest * span->most);
  const double lowered = std::log2(span->most) - std::log2(span->least);
  const bool uncured = lowered >= kLowered && room + lowered >= kOutOfReach;
  if (!(room <= kNearLimit) || uncured) return std::nullopt;
  return Judgement{
      Cause::undetermined,
      fmt::format(
          "the gradient holds {} at step {} and is recorded as not computed in FP16, but at "
          "{} gradients reach {:.3g} at its loss scale {}: near 65520, where a cast to FP16 "
          "by hand makes infinities. If there is one, a smaller loss scale helps; if not, "
          "the model makes them",
          first.held, first.at, steps_text(near.steps), *near.largest * span->most, span->most)};
}

/// Infinities in wide gradients come from the model, unless a narrow gradient that is not recorded
/// or a cast may have brought them.
Judgement judge_wide_gradient(const LogView& view, const Run& run, const First& first) {
  bool isolated = !view.any_narrow;
  if (!isolated && run.first().tensor) {
    const auto incoming = view.order.incoming_gradient(*run.first().tensor);
    const StepFindings* from = incoming ? find_step(view.tensor(*incoming), first.at) : nullptr;
    isolated = incoming ? from != nullptr : view.order.is_last(*run.first().tensor);
  }
  if (const auto cast = judge_cast(view, run, first)) return *cast;
  if (isolated) {
    return {Cause::nan_in_model,
            fmt::format("the gradient holds {} at step {} although it is not computed in FP16 and "
                        "what came into it is finite",
                        first.held, first.at)};
  }
  return {Cause::undetermined,
          fmt::format("the gradient is not computed in FP16 itself, but others of the run "
                      "are, and the one that came into it at step {} is not recorded "
                      "(activation_grad)",
                      first.at)};
}

// Thresholds in binades; docs/numerics.md, "Infinities in gradients", has the reasons.
constexpr double kFar = 8;  ///< neighbours leave this much room: their kind did not overflow

std::string scales_text(const ScaleSpan& span) {
  return span.least == span.most
             ? fmt::format("at loss scale {}", span.least)
             : fmt::format("at every loss scale from {} down to {}", span.most, span.least);
}

/// Room at the smallest scale that failed: below what finite steps reach, or what FP16 can hold.
double room_of(const ScaleSpan& span, const Neighbours& near) {
  const double limit = std::log2(to_double(boundaries(kBinary16).overflow));
  return limit - (near.largest ? std::log2(*near.largest) : limit) - std::log2(span.least);
}

std::string far_text(const First& first, const ScaleSpan& span, const Neighbours& near) {
  const std::string held =
      fmt::format("the gradients of step {} hold {} {}", first.at, first.held, scales_text(span));
  return near.largest
             ? fmt::format(
                   "{}, although at {} they reach at most {:.3g} unscaled, {:.1f} binades "
                   "below overflow at {}",
                   held, steps_text(near.steps), *near.largest, room_of(span, near), span.least)
             : fmt::format("{}, where {:.3g} is the least that overflows", held,
                           65520 / span.least);
}

/// Infinities far above what gradients reach elsewhere; empty where they are not.
std::optional<Judgement> judge_far(const LogView& view, const First& first, const ScaleSpan& span,
                                   const Neighbours& near) {
  const double room = room_of(span, near);
  if (!(room >= kFar)) return std::nullopt;
  const std::string evidence = far_text(first, span, near);
  const bool cured_by_none =
      room >= kOutOfReach && std::log2(span.most) - std::log2(span.least) >= kLowered;
  if (!cured_by_none) {
    return Judgement{Cause::undetermined,
                     evidence +
                         ". A rare large gradient and an infinity that no scale made look alike; "
                         "the step's gradients recorded in FP32, or at a scale far lower, tell "
                         "them apart"};
  }
  Judgement judgement{Cause::nan_in_model,
                      evidence +
                          ": lowering the scale does not cure it, the backward pass makes "
                          "it (a division by zero, say)"};
  if (!forward_known(view, first.at)) {
    judgement = {Cause::undetermined,
                 evidence +
                     ": lowering the scale does not cure it. Whether the forward pass "
                     "overflows is not known, since neither its loss nor its activations "
                     "are recorded"};
  }
  judgement.at_every_scale = true;
  return judgement;
}

/// Infinities at scale 1 or less are not the scale's doing.
Judgement judge_unscaled(const First& first, std::int64_t step, double scale) {
  if (first.inf) {
    return {Cause::at_scale_1,
            fmt::format("gradients overflow at step {} even at loss scale {}: they reach {:.4g} "
                        "themselves. Keep this tensor in FP32 or BF16",
                        step, scale, 65520 / scale)};
  }
  return {Cause::nan_in_model,
          fmt::format("gradients are NaN at step {} even at loss scale {}, and none of them is "
                      "infinite",
                      step, scale)};
}

/// Gradients computed in FP16 at a scale above 1, the forward pass finite: what do other steps say?
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
  const int by_magnitude = highest_safe_log2(magnitude_of(*near.largest), 1.0, kBinary16);
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
  if (first.inf || span->least > 1) {
    if (auto far = judge_far(view, first, *span, near)) return *far;
  }
  if (span->least <= 1) return judge_unscaled(first, span->least_at, span->least);
  if (!forward_known(view, first.at)) {
    return {Cause::undetermined,
            fmt::format("the gradients of step {} hold {} at loss scale {}, but neither its "
                        "loss nor its activations are recorded",
                        first.at, first.held, span->first)};
  }
  return judge_scaled(view, first, *span, near);
}

Judgement judge_after(const First& first) {
  if (first.inf && *first.narrow) {
    return {Cause::at_scale_1,
            fmt::format("what the optimizer makes at step {} holds {} although the gradients are "
                        "finite: it overflows in FP16. Keep it in FP32",
                        first.at, first.held)};
  }
  return {Cause::nan_in_model,
          fmt::format("what the optimizer makes at step {} holds {} although the gradients are "
                      "finite",
                      first.at, first.held)};
}

Judgement recorded(const LogView& view, const Run& run) {
  const First first = first_of(view, run);
  switch (phase_of(first.role)) {
    case Phase::weights: return judge_weights(first);
    case Phase::forward:
    case Phase::loss: return judge_forward(view, first);
    case Phase::backward: return judge_gradient(view, run, first);
    case Phase::optimizer: return judge_after(first);
    case Phase::unknown: break;
  }
  return {Cause::undetermined,
          fmt::format("the tensor holds {} at step {}, but has no role; --role GLOB=ROLE "
                      "names it",
                      first.held, first.at)};
}

Judgement what_if(const LogView& view, const Run& run) {
  const std::string_view format = view.analysis.target.name;
  const double limit = to_double(boundaries(view.analysis.target.format).overflow);
  if (run.kind == Kind::what_if_forward) {
    const StepFindings& step = *find_step(view.tensor(*run.first().tensor), run.first_step());
    return {Cause::at_scale_1,
            fmt::format(
                "its largest magnitude at step {} is {:.6g}; {} overflows from {} on. Keep this "
                "tensor in FP32 or BF16",
                run.first_step(), step.max_abs.value_or(INFINITY), format, limit)};
  }
  const Largest largest = largest_gradient(view, run);
  const double scale = scale_of(view, run).value_or(1.0);
  const std::string found = fmt::format(
      "the largest gradient is {:.6g} unscaled at step {}, times {} that is {:.6g}; {} overflows "
      "from {} on",
      largest.unscaled, largest.step, scale, largest.unscaled * scale, format, limit);
  if (largest.safe_log2 < 0) {
    return {Cause::at_scale_1, found + fmt::format(". Only a scale of 2^{} or less, FP32 or "
                                                   "BF16 helps",
                                                   largest.safe_log2)};
  }
  return {Cause::by_scale, found, largest.safe_log2, false};
}

}  // namespace

Judgement judge_recorded(const LogView& view, const Run& run) {
  return as_sentence(recorded(view, run));
}

Judgement judge_what_if(const LogView& view, const Run& run) {
  return as_sentence(what_if(view, run));
}

std::optional<double> scale_of(const LogView& view, const Run& run) {
  const Mark& mark = run.first();
  const std::int64_t step = run.first_step();
  if (phase_of(mark.role) != Phase::backward && mark.role != Role::loss) return std::nullopt;
  if (run.kind == Kind::what_if_gradient) {
    return mark.tensor
               ? scale_seen(view.tensor(*mark.tensor), *find_step(view.tensor(*mark.tensor), step))
               : view.scale_seen(step);
  }
  if (phase_of(mark.role) != Phase::backward) return std::nullopt;
  if (!mark.tensor) return view.scalars.loss_scale(step);
  const TensorFindings& tensor = view.tensor(*mark.tensor);
  return computed_scale(tensor, *find_step(tensor, step), view.scalars);
}

}  // namespace halfscope::analyzers
