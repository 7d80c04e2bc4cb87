// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow_parts.hpp"

#include <fmt/format.h>

#include <cmath>

namespace halfscope::analyzers::overflow {

using underflow::Phase;

namespace {

using log::Role;

/// Returns LogView::narrow() of a role that only scalars show; for a loss also of activations.
std::optional<bool> narrow_role(const LogView& view, Role role) {
  if (const auto known = view.narrow(role)) return known;
  if (role == Role::loss) return view.narrow(Role::activation);
  return view.narrow(role == Role::weight_grad ? Role::activation_grad : Role::weight_grad);
}

/// The same for the loss itself, from its histogram or the manifest.
std::optional<bool> narrow_loss(const LogView& view) {
  if (const auto known = view.narrow(Role::loss)) return known;
  const auto& manifest = view.log.manifest;
  if (!manifest || !manifest->loss_dtype) return std::nullopt;
  return format_of(*manifest->loss_dtype).emax <= kBinary16.emax;
}

std::string held_text(const underflow::Counts& counts) {
  const auto some = [](const Interval& n, std::string_view one, std::string_view more) {
    if (!n.exact()) return fmt::format("{} to {} {}", n.low, n.high, more);
    return fmt::format("{} {}", n.low, n.low == 1 ? one : more);
  };
  std::string text;
  if (counts.inf.low != 0) text = some(counts.inf, "infinity", "infinities");
  if (counts.nan.low != 0) text += (text.empty() ? "" : " and ") + some(counts.nan, "NaN", "NaN");
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
  const underflow::Counts counts = first.tensor->per_step.find(first.at)->counts;
  first.nan = counts.nan.low != 0;
  first.inf = counts.inf.low != 0;
  first.held = held_text(counts);
  const bool known = first.tensor->source_dtype || first.tensor->computed_dtype;
  // For gradients of unknown type, the scales of the run decide.
  if (known || is_gradient(first.role))
    first.narrow = underflow::may_have_fp16_range(*first.tensor);
  return first;
}

Judgement judge_weights(const First& first) {
  if (!first.narrow) return not_recorded_dtype(first);
  if (first.inf && *first.narrow) {
    return {
        Cause::at_scale_1,
        fmt::format("the weights hold {} before step {} begins: they overflow in {}. Keep them "
                    "in FP32 or BF16",
                    first.held, first.at,
                    first.tensor->source_dtype ? name_of(*first.tensor->source_dtype) : "FP16")};
  }
  return {Cause::nan_in_model,
          fmt::format("the weights hold {} before step {} begins, with no sign of trouble in the "
                      "recorded step before",
                      first.held, first.at)};
}

/// Judges a loss that only a scalar shows. The activations show if an infinity came in.
Judgement judge_loss_scalar(const LogView& view, const First& first) {
  const std::string_view is = first.nan ? "NaN" : "infinite";
  if (*first.narrow && !has_role(view, Role::activation, first.at)) {
    return {Cause::undetermined,
            fmt::format("the loss of step {} is {}, but that step's activations are not "
                        "recorded; record histograms of activations at that step",
                        first.at, is)};
  }
  const std::optional<bool> narrow = narrow_loss(view);
  if (first.inf && *first.narrow && !narrow) {
    return {Cause::undetermined,
            fmt::format("the loss of step {} is infinite, the activations are finite, and the log "
                        "does not say which dtype computes the loss (loss_dtype)",
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

Judgement judge_after(const First& first) {
  if (first.inf && *first.narrow) {
    return {Cause::at_scale_1,
            fmt::format("the optimizer's results at step {} hold {} although the gradients are "
                        "finite: it overflows in FP16. Keep it in FP32",
                        first.at, first.held)};
  }
  return {
      Cause::nan_in_model,
      fmt::format("the optimizer's results at step {} hold {} although the gradients are finite",
                  first.at, first.held)};
}

Judgement recorded(const LogView& view, const Run& run) {
  const First first = first_of(view, run);
  switch (underflow::phase_of(first.role)) {
    case Phase::weights: return judge_weights(first);
    case Phase::forward:
    case Phase::loss: return judge_forward(view, first);
    case Phase::backward: return judge_gradient(view, run, first);
    case Phase::optimizer: return judge_after(first);
    case Phase::unknown: break;
  }
  return {Cause::undetermined,
          fmt::format(
              "the tensor holds {} at step {}, but has no role; give it one with --role GLOB=ROLE",
              first.held, first.at)};
}

Judgement what_if(const LogView& view, const Run& run) {
  const std::string_view format = view.analysis.target.name;
  const double limit = to_double(boundaries(view.analysis.target.format).overflow);
  if (run.kind == Kind::what_if_forward) {
    const auto step = view.tensor(*run.first().tensor).per_step.find(run.first_step());
    return {Cause::at_scale_1,
            fmt::format(
                "its largest magnitude at step {} is {:.6g}; {} overflows from {} on. Keep this "
                "tensor in FP32 or BF16",
                run.first_step(), step->max_abs.value_or(INFINITY), format, limit)};
  }
  const LargestGradient largest = largest_gradient(view, run);
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

Judgement not_recorded_dtype(const First& first) {
  return {Cause::undetermined,
          fmt::format("step {} holds {} in role {}; histograms of it would show more", first.at,
                      first.held, name_of(first.role))};
}

Judgement judge(const LogView& view, const Run& run) {
  Judgement judgement = run.kind == Kind::recorded ? recorded(view, run) : what_if(view, run);
  std::string& why = judgement.why;
  if (why.front() >= 'a' && why.front() <= 'z') {
    why.front() = static_cast<char>(why.front() - 'a' + 'A');
  }
  if (why.back() != '.') why += '.';
  return judgement;
}

std::optional<double> scale_of(const LogView& view, const Run& run) {
  const Mark& mark = run.first();
  const std::int64_t step = run.first_step();
  if (underflow::phase_of(mark.role) != Phase::backward && mark.role != Role::loss) {
    return std::nullopt;
  }
  if (run.kind == Kind::what_if_gradient) {
    return mark.tensor ? underflow::scale_seen(view.tensor(*mark.tensor),
                                               *view.tensor(*mark.tensor).per_step.find(step))
                       : view.scale_seen(step);
  }
  if (underflow::phase_of(mark.role) != Phase::backward) return std::nullopt;
  if (!mark.tensor) return view.scalars.loss_scale(step);
  const underflow::TensorFindings& tensor = view.tensor(*mark.tensor);
  return underflow::computed_scale(tensor, *tensor.per_step.find(step), view.scalars);
}

}  // namespace halfscope::analyzers::overflow
