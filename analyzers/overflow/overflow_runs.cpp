// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow_runs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace halfscope::analyzers::overflow {

using underflow::StepFindings;
using underflow::TensorFindings;

namespace {

using log::Role;
using log::StepScalars;

/// Steps where something could have been seen, and what was.
struct Glance {
  std::vector<std::int64_t> steps;
  std::map<std::int64_t, Mark> marks;
  std::set<std::int64_t> without_gradients;  ///< of them: a finite loss is all that is recorded
};

bool concerns(Kind kind, const TensorFindings& tensor) {
  switch (kind) {
    case Kind::recorded: return true;
    case Kind::what_if_forward: return !tensor.loss_scaled && tensor.role != Role::unknown;
    case Kind::what_if_gradient: return tensor.loss_scaled;
  }
  return false;
}

bool shows(Kind kind, const LogView& view, const TensorFindings& tensor, const StepFindings& step) {
  if (kind == Kind::recorded) return underflow::nonfinite(step);
  const Format format = view.analysis.target.format;
  const double scale = underflow::scale_seen(tensor, step);
  if (!underflow::overflows(step, format, scale)) return false;
  const double held = view.scalars.in_fp16(tensor.role, step.step, *step.max_abs);
  return held == *step.max_abs || magnitude_of(held) >= boundaries(format, scale).overflow;
}

/// What the scalars show of infinities and NaN: the loss, else the gradients, backward.
std::optional<Mark> nonfinite_mark(const StepScalars& s) {
  const auto is_bad = [](std::optional<double> x) { return x && !std::isfinite(*x); };
  if (is_bad(s.loss)) return Mark{{}, Role::loss, *s.loss};
  if (is_bad(s.max_abs_activation_grad)) {
    return Mark{{}, Role::activation_grad, *s.max_abs_activation_grad};
  }
  if (is_bad(s.max_abs_weight_grad)) return Mark{{}, Role::weight_grad, *s.max_abs_weight_grad};
  if (s.found_inf.value_or(false)) return Mark{{}, Role::weight_grad, 0.0};
  return std::nullopt;
}

/// What they show of gradients that would overflow.
std::optional<Mark> overflow_mark(const LogView& view, const StepScalars& s) {
  const Magnitude limit = boundaries(view.analysis.target.format, view.scale_seen(s.step)).overflow;
  const auto reaches = [&](std::optional<double> x) {
    return x && std::isfinite(*x) && *x != 0 && magnitude_of(std::abs(*x)) >= limit;
  };
  const std::optional<double> loss = view.counted_loss(s);  // multiplied before anything else
  if (reaches(loss)) return Mark{{}, Role::loss, *loss};
  if (reaches(s.max_abs_activation_grad)) {
    return Mark{{}, Role::activation_grad, *s.max_abs_activation_grad};
  }
  if (!s.max_abs_weight_grad) return std::nullopt;
  const double held = view.scalars.in_fp16(Role::weight_grad, s.step, *s.max_abs_weight_grad);
  return reaches(held) ? std::optional(Mark{{}, Role::weight_grad, held}) : std::nullopt;
}

bool has_gradients(const StepScalars& s) {
  return s.max_abs_weight_grad || s.max_abs_activation_grad;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> steps) {
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

bool says_anything(Kind kind, const LogView& view, const StepScalars& s) {
  return has_gradients(s) || view.counted_loss(s) ||
         (kind == Kind::recorded && (s.loss || s.found_inf));
}

bool tells_skips_alone(const LogView& view) {
  return !view.log.kinds.empty() && view.order.tensors().empty() &&
         std::ranges::none_of(view.scalars.steps(),
                              [](const StepScalars* step) { return has_gradients(*step); });
}

/// A table shows more than a scalar; a scalar goes first only where it is of an earlier phase. Of a
/// log that has no magnitudes at all, that steps were skipped is told elsewhere:
/// timeline_facts.hpp.
void add_scalars(Kind kind, const LogView& view, Glance& seen) {
  const bool skips_alone = tells_skips_alone(view);
  const std::set<std::int64_t> with_tables(seen.steps.begin(), seen.steps.end());
  for (const StepScalars* const scalars : view.scalars.steps()) {
    const std::int64_t step = scalars->step;
    if (!says_anything(kind, view, *scalars)) continue;
    const bool loss_alone = !has_gradients(*scalars) && !scalars->found_inf;
    if (loss_alone && with_tables.count(step) == 0) seen.without_gradients.insert(step);
    seen.steps.push_back(step);
    const auto mark =
        kind == Kind::recorded ? nonfinite_mark(*scalars) : overflow_mark(view, *scalars);
    if (!mark || (skips_alone && mark->role != Role::loss)) continue;
    const auto [at, is_new] = seen.marks.try_emplace(step, *mark);
    if (!is_new && underflow::phase_of(mark->role) < underflow::phase_of(at->second.role)) {
      at->second = *mark;
    }
  }
}

Glance look(const LogView& view, Kind kind) {
  Glance seen;
  for (const std::size_t i : view.order.tensors()) {  // first computed first: the first mark stays
    const TensorFindings& tensor = view.tensor(i);
    if (!concerns(kind, tensor)) continue;
    for (const StepFindings& step : tensor.per_step) {
      seen.steps.push_back(step.step);
      if (shows(kind, view, tensor, step)) {
        seen.marks.try_emplace(step.step, Mark{i, tensor.role, 0.0});
      }
    }
  }
  if (kind != Kind::what_if_forward) add_scalars(kind, view, seen);
  seen.steps = sorted(std::move(seen.steps));
  return seen;
}

std::vector<std::int64_t> find_clean_steps(const LogView& view) {
  std::vector<std::int64_t> with_gradients, bad, clean;
  for (const std::size_t i : view.order.tensors()) {
    const TensorFindings& tensor = view.tensor(i);
    for (const StepFindings& step : tensor.per_step) {
      if (underflow::phase_of(tensor.role) == underflow::Phase::backward) {
        with_gradients.push_back(step.step);
      }
      if (underflow::nonfinite(step)) bad.push_back(step.step);
    }
  }
  for (const StepScalars* const scalars : view.scalars.steps()) {
    if (has_gradients(*scalars)) with_gradients.push_back(scalars->step);
    if (nonfinite_mark(*scalars)) bad.push_back(scalars->step);
  }
  std::ranges::set_difference(sorted(std::move(with_gradients)), sorted(std::move(bad)),
                              std::back_inserter(clean));
  return clean;
}

}  // namespace

LogView::LogView(const underflow::Analysis& of, const underflow::LogFindings& one)
    : analysis(of), log(one), order(one), scalars(one) {
  half_loss = log.manifest && log.manifest->loss_dtype == Dtype::f16;
  any_narrow = std::ranges::any_of(log.tensors, underflow::computed_narrow);
  for (const TensorFindings& t : log.tensors) formats.add(t);
  at_run_scale = std::ranges::any_of(log.tensors, [&](const TensorFindings& t) {
    return t.loss_scaled && std::ranges::any_of(t.per_step, [&](const StepFindings& step) {
             return step.loss_scale != of.loss_scale;
           });
  });
  clean_steps = find_clean_steps(*this);
  for (const StepScalars* const told : scalars.steps()) scalar_steps.push_back(told->step);
  if (!scalar_steps.empty()) last_step = scalar_steps.back();
  for (const TensorFindings& t : log.tensors) {
    if (!t.per_step.empty()) last_step = std::max(last_step, t.per_step.back().step);
  }
}

std::optional<bool> LogView::narrow(Role role) const {
  bool found = false;
  for (const std::size_t i : order.tensors()) {
    if (tensor(i).role != role) continue;
    if (underflow::computed_narrow(tensor(i))) return true;
    found = true;
  }
  return found ? std::optional(false) : std::nullopt;
}

double LogView::scale_seen(std::int64_t step) const {
  return at_run_scale ? scalars.loss_scale(step).value_or(1.0) : analysis.loss_scale;
}

std::vector<Run> find_runs(const LogView& view, Kind kind) {
  const Glance seen = look(view, kind);
  std::vector<Run> runs;
  bool going_on = false;
  for (const std::int64_t step : seen.steps) {
    const auto mark = seen.marks.find(step);
    const bool marked = mark != seen.marks.end();
    if (marked && !going_on) runs.push_back({kind, {}});
    if (marked) runs.back().steps.emplace_back(step, mark->second);
    // A step that tells nothing of gradients does not end their run.
    const bool untold =
        going_on && seen.without_gradients.count(step) != 0 &&
        underflow::phase_of(runs.back().steps.back().second.role) == underflow::Phase::backward;
    going_on = marked || untold;
  }
  return runs;
}

}  // namespace halfscope::analyzers::overflow
