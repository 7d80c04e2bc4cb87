// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow_parts.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

namespace halfscope::analyzers::overflow {

using underflow::StepFindings;
using underflow::TensorFindings;

namespace {

using log::Role;
using log::StepScalars;

/// Calls look(i, found) for all tensors in parallel; joins the results in the tensors' order.
template <typename Found, typename Look>
Found over_tensors(const std::vector<TensorFindings>& tensors, const Look& look) {
  using Range = tbb::blocked_range<std::size_t>;
  constexpr std::size_t kGrain = 256;
  const auto add = [&](const Range& range, Found found) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) look(i, found);
    return found;
  };
  const auto join = [](Found a, const Found& b) {
    a.append(b);
    return a;
  };
  return tbb::parallel_reduce(Range(0, tensors.size(), kGrain), Found(), add, join);
}

/// Collects step numbers, with few duplicates, to be sorted.
class StepNumbers {
 public:
  void add(std::int64_t step) {
    if (steps_.empty() || steps_.back() != step) steps_.push_back(step);
  }
  void append(const StepNumbers& more) {
    steps_.insert(steps_.end(), more.steps_.begin(), more.steps_.end());
  }
  std::vector<std::int64_t> sorted() && {
    std::ranges::sort(steps_);
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    return std::move(steps_);
  }

 private:
  std::vector<std::int64_t> steps_;
};

/// Steps with data of a kind, and the marks found in them.
struct MarkedSteps {
  StepNumbers steps;
  std::map<std::int64_t, Mark> marks;
  std::set<std::int64_t> without_gradients;  ///< steps for which only a finite loss is recorded
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

/// Returns the mark of infinities or NaN in scalars: of the loss, else of gradients, backward.
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

/// Returns the mark of gradients in the scalars that would overflow.
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

bool says_anything(Kind kind, const LogView& view, const StepScalars& s) {
  return has_gradients(s) || view.counted_loss(s) ||
         (kind == Kind::recorded && (s.loss || s.found_inf));
}

bool tells_skips_alone(const LogView& view) {
  return !view.log.kinds.empty() && view.log.tensors.empty() &&
         std::ranges::none_of(view.scalars.steps(),
                              [](const StepScalars* step) { return has_gradients(*step); });
}

/// Adds marks from scalars. A tensor's mark is kept unless the scalar is of an earlier phase. For a
/// log without any magnitudes, timeline_facts.hpp reports the skipped steps.
void add_scalars(Kind kind, const LogView& view, MarkedSteps& seen) {
  const bool skips_alone = tells_skips_alone(view);
  const std::vector<std::int64_t> with_tables = StepNumbers(seen.steps).sorted();
  for (const StepScalars* const scalars : view.scalars.steps()) {
    const std::int64_t step = scalars->step;
    if (!says_anything(kind, view, *scalars)) continue;
    const bool loss_alone = !has_gradients(*scalars) && !scalars->found_inf;
    if (loss_alone && !std::ranges::binary_search(with_tables, step)) {
      seen.without_gradients.insert(step);
    }
    seen.steps.add(step);
    const auto mark =
        kind == Kind::recorded ? nonfinite_mark(*scalars) : overflow_mark(view, *scalars);
    if (!mark || (skips_alone && mark->role != Role::loss)) continue;
    const auto [at, is_new] = seen.marks.try_emplace(step, *mark);
    if (!is_new && underflow::phase_of(mark->role) < underflow::phase_of(at->second.role)) {
      at->second = *mark;
    }
  }
}

/// Steps of tensors with values of one kind.
struct Shown {
  StepNumbers steps;
  std::map<std::size_t, std::vector<std::int64_t>> by_tensor;  ///< steps by tensor; usually empty

  void append(const Shown& more) {
    steps.append(more.steps);
    by_tensor.insert(more.by_tensor.begin(), more.by_tensor.end());
  }
};

/// Marks each step with the first tensor, in the order of computation, with values of the kind.
void add_tensors(Kind kind, const LogView& view, MarkedSteps& seen) {
  auto shown = over_tensors<Shown>(view.log.tensors, [&](std::size_t i, Shown& found) {
    const TensorFindings& tensor = view.tensor(i);
    if (!concerns(kind, tensor)) return;
    for (const StepFindings& step : tensor.per_step) {
      found.steps.add(step.step);
      if (shows(kind, view, tensor, step)) found.by_tensor[i].push_back(step.step);
    }
  });
  seen.steps = std::move(shown.steps);
  if (shown.by_tensor.empty()) return;
  for (const std::size_t i : view.order().tensors()) {
    const auto found = shown.by_tensor.find(i);
    if (found == shown.by_tensor.end()) continue;
    for (const std::int64_t step : found->second) {
      seen.marks.try_emplace(step, Mark{i, view.tensor(i).role, 0.0});
    }
  }
}

MarkedSteps look(const LogView& view, Kind kind) {
  MarkedSteps seen;
  add_tensors(kind, view, seen);
  if (kind != Kind::what_if_forward) add_scalars(kind, view, seen);
  return seen;
}

/// Facts from the steps of all of a log's tensors.
struct TensorSteps {
  StepNumbers with_gradients, bad, broken_forward;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  bool at_run_scale = false;

  void append(const TensorSteps& more) {
    with_gradients.append(more.with_gradients);
    bad.append(more.bad);
    broken_forward.append(more.broken_forward);
    last = std::max(last, more.last);
    at_run_scale = at_run_scale || more.at_run_scale;
  }
};

TensorSteps tensor_steps(const LogView& view) {
  return over_tensors<TensorSteps>(view.log.tensors, [&](std::size_t i, TensorSteps& found) {
    const TensorFindings& tensor = view.tensor(i);
    const bool backward = underflow::phase_of(tensor.role) == underflow::Phase::backward;
    for (const StepFindings& step : tensor.per_step) {
      if (backward) found.with_gradients.add(step.step);
      if (underflow::nonfinite(step)) found.bad.add(step.step);
      if (underflow::breaks_forward(tensor.role, step.scale, step.counts.nan, step.counts.inf)) {
        found.broken_forward.add(step.step);
      }
      found.last = std::max(found.last, step.step);
      const bool other_scale = step.loss_scale != view.analysis.loss_scale;
      found.at_run_scale = found.at_run_scale || (tensor.loss_scaled && other_scale);
    }
  });
}

std::vector<std::int64_t> find_clean_steps(const LogView& view, TensorSteps&& tensors) {
  auto& [with_gradients, bad, broken_forward, last, at_run_scale] = tensors;
  for (const StepScalars* const scalars : view.scalars.steps()) {
    if (has_gradients(*scalars)) with_gradients.add(scalars->step);
    if (nonfinite_mark(*scalars)) bad.add(scalars->step);
  }
  std::vector<std::int64_t> clean;
  std::ranges::set_difference(std::move(with_gradients).sorted(), std::move(bad).sorted(),
                              std::back_inserter(clean));
  return clean;
}

}  // namespace

LogView::LogView(const underflow::Analysis& of, const underflow::LogFindings& one)
    : analysis(of), log(one), scalars(one) {
  half_loss = log.manifest && log.manifest->loss_dtype == Dtype::f16;
  any_narrow = std::ranges::any_of(log.tensors, underflow::may_have_fp16_range);
  for (const TensorFindings& t : log.tensors) formats.add(t);
  TensorSteps tensors = tensor_steps(*this);
  at_run_scale = tensors.at_run_scale;
  for (const StepScalars* const told : scalars.steps()) {
    scalar_steps.push_back(told->step);
    if (told->loss && !std::isfinite(*told->loss)) tensors.broken_forward.add(told->step);
  }
  broken_forward = std::move(tensors.broken_forward).sorted();
  if (!scalar_steps.empty()) last_step = scalar_steps.back();
  last_step = std::max(last_step, tensors.last);
  clean_steps = find_clean_steps(*this, std::move(tensors));
}

std::optional<bool> LogView::narrow(Role role) const {
  bool found = false;
  for (const TensorFindings& tensor : log.tensors) {
    if (tensor.role != role) continue;
    if (underflow::may_have_fp16_range(tensor)) return true;
    found = true;
  }
  return found ? std::optional(false) : std::nullopt;
}

double LogView::scale_seen(std::int64_t step) const {
  return at_run_scale ? scalars.loss_scale(step).value_or(1.0) : analysis.loss_scale;
}

std::vector<Run> find_runs(const LogView& view, Kind kind) {
  MarkedSteps seen = look(view, kind);
  std::vector<Run> runs;
  bool going_on = false;
  for (const std::int64_t step : std::move(seen.steps).sorted()) {
    const auto mark = seen.marks.find(step);
    const bool marked = mark != seen.marks.end();
    if (marked && !going_on) runs.push_back({kind, {}});
    if (marked) runs.back().steps.emplace_back(step, mark->second);
    // A step without data on gradients does not end their run.
    const bool untold =
        going_on && seen.without_gradients.count(step) != 0 &&
        underflow::phase_of(runs.back().steps.back().second.role) == underflow::Phase::backward;
    going_on = marked || untold;
  }
  return runs;
}

}  // namespace halfscope::analyzers::overflow
