// SPDX-License-Identifier: Apache-2.0
// Totals of two compared runs: which values are lost, and what is worse in B.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "analyzers/compare/compare.hpp"

namespace halfscope::analyzers::compare {

using underflow::Analysis;
using underflow::Counts;
using underflow::TensorFindings;

namespace {

/// Shares below this count as no loss.
constexpr double kNothing = 1e-4;

/// Returns true if the shares do not really differ, for any values within their bounds.
bool are_similar(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b) {
  constexpr double kLeast = 1e-3, kLeastOfLarger = 0.1;
  const double high_a = share(a.high, of_a), high_b = share(b.high, of_b);
  const double low_a = share(a.low, of_a), low_b = share(b.low, of_b);
  if (high_a < kNothing && high_b < kNothing) return true;
  const double apart = std::max(high_a - low_b, high_b - low_a);
  return apart < kLeast && apart < kLeastOfLarger * std::max(low_a, low_b);
}

/// Sums a tensor's new zeros and lost values. The zeros that only B has minus the zeros that only A
/// has are the difference of their zeros.
void sum_zeros(ComparedTensor& t, const TensorFindings& a, const TensorFindings& b) {
  t.new_zeros.reset();
  for (const StepZeros& at : t.zeros_at) {
    if (!t.new_zeros) t.new_zeros.emplace();
    *t.new_zeros += at.new_zeros;
  }
  if (!t.untouched.a) t.lost.a = t.counts.a.classes.flushed_to_zero;
  if (!t.untouched.b) t.lost.b = t.counts.b.classes.flushed_to_zero;
  const auto gone = [&](std::uint64_t new_ones) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(new_ones) - t.zero_difference);
  };
  const Interval gone_in_b = t.new_zeros.value_or(Interval(0, t.counts.b.zero.high));
  const Interval gone_in_a = t.new_zeros ? Interval(gone(t.new_zeros->low), gone(t.new_zeros->high))
                                         : Interval(0, t.counts.a.zero.high);
  t.likely_lost = t.lost;
  const auto add = [](Interval& lost, Interval& likely, const Interval& zeros, bool far) {
    lost += far ? Interval(0, zeros.high) : zeros;
    if (!far) likely += zeros;
  };
  if (!a.underflow_identifiable) add(t.lost.a, t.likely_lost.a, gone_in_a, t.far.a);
  if (!b.underflow_identifiable) add(t.lost.b, t.likely_lost.b, gone_in_b, t.far.b);
}

/// Adds a gradient to the sums of one run.
void add_gradient(RunTotals& run, const TensorFindings& tensor, const Counts& counts,
                  const Interval& lost, const Interval& likely_lost,
                  const std::vector<std::int64_t>& steps) {
  run.gradients += counts;
  run.lost += lost;
  run.likely_lost += likely_lost;
  run.underflow_identifiable = run.underflow_identifiable && tensor.underflow_identifiable;
  run.in_target = run.in_target || tensor.zeros_may_be_flushed;
  const std::optional<Dtype> computed =
      tensor.computed_in_fp16() ? Dtype::f16 : tensor.computed_dtype;
  const auto quantum = [](Dtype dtype) { return format_of(dtype).min_quantum_exponent(); };
  if (computed && (!run.computed || quantum(*computed) > quantum(*run.computed))) {
    run.computed = computed;
  }
  for (const underflow::StepFindings& step : tensor.per_step) {
    if (!std::binary_search(steps.begin(), steps.end(), step.step)) continue;
    auto& [least, largest] = run.loss_scales
                                 ? *run.loss_scales
                                 : run.loss_scales.emplace(step.loss_scale, step.loss_scale);
    least = std::min(least, step.loss_scale);
    largest = std::max(largest, step.loss_scale);
  }
}

/// Returns the number of values that are not finite or overflowed in their own format.
Interval not_finite_of(const Counts& counts, bool untouched) {
  return untouched ? counts.nan + counts.inf : not_finite(counts);
}

/// Returns how much worse B is, as shares, most important first: values newly not finite, values
/// newly lost to zero, weight updates newly lost.
std::tuple<double, double, double> harm(const ComparedTensor& t) {
  const std::uint64_t of_a = std::max<std::uint64_t>(1, t.counts.a.total);
  const std::uint64_t of_b = std::max<std::uint64_t>(1, t.counts.b.total);
  const auto surely = [&](const Interval& a, const Interval& b) {
    return std::max(0.0, share(b.low, of_b) - share(a.high, of_a));
  };
  const Interval &lost_a = t.likely_lost.a, &lost_b = t.likely_lost.b;
  const bool loses = real_change_of(lost_a, of_a, lost_b, of_b) == Change::more;
  double updates = 0;
  if (t.updates) {
    if (change_of_updates(*t.updates, t.ineffective_updates, t.lost_updates) == Change::more) {
      updates = share(t.ineffective_updates.b, t.updates->b.pairs) -
                share(t.ineffective_updates.a, t.updates->a.pairs);
    }
  }
  return {surely(t.not_finite.a, t.not_finite.b), loses ? surely(lost_a, lost_b) : 0.0, updates};
}

void rank(std::vector<ComparedTensor>& tensors) {
  for (ComparedTensor& t : tensors) t.harmed = harm(t) > std::tuple(0.0, 0.0, 0.0);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& x, const auto& y) {
    return std::pair(harm(x), x.largest_share_difference.value_or(0)) >
           std::pair(harm(y), y.largest_share_difference.value_or(0));
  });
}

/// Sums the new zeros of the gradients: over all steps, and over steps with whole tensors.
void sum_new_zeros(Comparison& c) {
  Interval all;
  bool known = c.gradients != 0;
  WholeZeros whole;
  std::set<std::int64_t> steps;
  for (const ComparedTensor& t : c.tensors) {
    if (!t.loss_scaled) continue;
    known = known && t.new_zeros;
    all += t.new_zeros.value_or(Interval());
    for (const StepZeros& at : t.zeros_at) {
      if (!at.whole) continue;
      steps.insert(at.step);
      whole.elements += at.total;
      whole.new_zeros += at.new_zeros.low;
    }
  }
  whole.steps = steps.size();
  c.new_zeros = known ? std::optional(all) : std::nullopt;
  c.whole_zeros = steps.empty() ? std::nullopt : std::optional(whole);
}

void set_changes(Comparison& c) {
  const RunTotals &a = c.runs.a, &b = c.runs.b;
  c.underflow = real_change_of(a.likely_lost, a.gradients.total, b.likely_lost, b.gradients.total);
  if (c.underflow == Change::unknown && c.zeros_tell) {
    c.underflow = real_change_of(lost_to_zero(a.gradients), a.gradients.total,
                                 lost_to_zero(b.gradients), b.gradients.total);
  }
  c.overflow = change_of(a.not_finite, a.gradients.total, b.not_finite, b.gradients.total);
  c.not_finite = change_of(a.not_finite_all, a.all.total, b.not_finite_all, b.all.total);
  if (!c.updates) return;
  c.ineffective_updates = change_of_updates(
      *c.updates, {a.ineffective_updates, b.ineffective_updates}, {a.lost_updates, b.lost_updates});
  c.zero_updates =
      real_change_of(c.updates->a.zero, c.updates->a.pairs, c.updates->b.zero, c.updates->b.pairs);
}

/// Returns the tensors and steps with a nonzero count `of`; empty if there are none. `of_target`:
/// only tensors computed in the target format.
template <typename Of>
std::optional<AffectedTensors> trouble(const underflow::LogFindings& log, bool of_target, Of of) {
  AffectedTensors out;
  std::set<std::int64_t> steps;
  std::uint64_t most = 0;
  for (const TensorFindings& tensor : log.tensors) {
    if (of_target && !tensor.zeros_may_be_flushed) continue;
    Interval values;
    for (const underflow::StepFindings& step : tensor.per_step) {
      const Interval at = of(step.counts);
      if (at.low != 0) steps.insert(step.step);
      values += at;
    }
    if (values.low == 0) continue;
    ++out.tensors;
    out.not_loss_scaled += tensor.loss_scaled ? 0 : 1;
    out.values += values;
    if (values.low > most) out.most = meeting_name(tensor.role, tensor.name);
    most = std::max(most, values.low);
  }
  if (steps.empty()) return std::nullopt;
  out.steps = steps.size();
  out.first_step = *steps.begin();
  out.last_step = *steps.rbegin();
  return out;
}

}  // namespace

std::string_view name_of(Change change) {
  switch (change) {
    case Change::unknown: return "unknown";
    case Change::less: return "less";
    case Change::same: return "same";
    case Change::more: return "more";
    case Change::similar: return "similar";
  }
  return "unknown";
}

Change change_of(const Interval& a, std::uint64_t of_a, const Interval& b, std::uint64_t of_b) {
  using Wide = unsigned __int128;
  if (of_a == 0 || of_b == 0) return Change::unknown;
  const auto product = [](std::uint64_t x, std::uint64_t y) { return Wide{x} * y; };
  if (product(b.high, of_a) < product(a.low, of_b)) return Change::less;
  if (product(b.low, of_a) > product(a.high, of_b)) return Change::more;
  const bool exact = a.exact() && b.exact();
  return exact && product(a.low, of_b) == product(b.low, of_a) ? Change::same : Change::unknown;
}

Change real_change_of(const Interval& a, std::uint64_t of_a, const Interval& b,
                      std::uint64_t of_b) {
  const Change change = change_of(a, of_a, b, of_b);
  if (of_a == 0 || of_b == 0 || change == Change::same) return change;
  if (are_similar(a, of_a, b, of_b)) return Change::similar;
  if (a.exact() && b.exact()) return change;
  // Bounds that nearly touch show no difference: their values may belong to either run.
  const double surely =
      std::max(share(b.low, of_b) - share(a.high, of_a), share(a.low, of_a) - share(b.high, of_b));
  return surely < kNothing ? Change::unknown : change;
}

Interval RunTotals::lost_to_zero() const { return compare::lost_to_zero(gradients); }
Interval RunTotals::not_finite_values() const { return compare::not_finite(gradients); }
Interval RunTotals::all_not_finite_values() const { return compare::not_finite(all); }

Interval lost_to_zero(const Counts& counts) { return counts.zero + counts.classes.flushed_to_zero; }

Interval not_finite(const Counts& counts) {
  return counts.nan + counts.inf + counts.classes.overflow;
}

void sum_up(Comparison& c, const underflow::LogFindings& a, const underflow::LogFindings& b) {
  c.updates.reset();
  c.gradients = 0;
  c.zero_difference = 0;
  c.zeros_tell = true;
  for (RunTotals* run : {&c.runs.a, &c.runs.b}) {
    run->gradients = run->all = Counts();
    run->lost = run->likely_lost = run->not_finite = run->not_finite_all = Interval();
  }
  for (ComparedTensor& t : c.tensors) {
    const TensorFindings &of_a = a.tensors[t.index.a], &of_b = b.tensors[t.index.b];
    sum_zeros(t, of_a, of_b);
    c.runs.a.all += t.counts.a;
    c.runs.b.all += t.counts.b;
    t.not_finite = {not_finite_of(t.counts.a, t.untouched.a),
                    not_finite_of(t.counts.b, t.untouched.b)};
    c.runs.a.not_finite_all += t.not_finite.a;
    c.runs.b.not_finite_all += t.not_finite.b;
    if (t.updates) {
      if (!c.updates) c.updates.emplace();
      c.updates->a += t.updates->a;
      c.updates->b += t.updates->b;
    }
    if (!t.loss_scaled) continue;
    c.runs.a.not_finite += t.not_finite.a;
    c.runs.b.not_finite += t.not_finite.b;
    ++c.gradients;
    add_gradient(c.runs.a, of_a, t.counts.a, t.lost.a, t.likely_lost.a, t.steps);
    add_gradient(c.runs.b, of_b, t.counts.b, t.lost.b, t.likely_lost.b, t.steps);
    c.zero_difference += t.zero_difference;
    c.zeros_tell = c.zeros_tell && t.new_zeros && of_a.zeros_may_be_flushed &&
                   of_b.zeros_may_be_flushed && !t.far.a && !t.far.b;
  }
  sum_unmoved(c, {&a, &b});
  sum_new_zeros(c);
  set_changes(c);
  rank(c.tensors);
}

void add_trouble(RunTotals& run, const underflow::LogFindings& log, bool own_format) {
  run.tensors = log.tensors.size();
  run.non_finite = trouble(log, false, [](const Counts& c) { return Interval(c.nan + c.inf); });
  run.overflow = trouble(log, own_format, [](const Counts& c) { return c.classes.overflow; });
}

}  // namespace halfscope::analyzers::compare
