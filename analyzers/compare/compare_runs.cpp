// SPDX-License-Identifier: Apache-2.0
// Decides which zeros may be underflow and which most likely are not: docs/compare.md.
// Compares the scalars of two runs: losses, loss scales, skipped steps, first differences.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analyzers/compare/compare.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::compare {

using Series = std::vector<std::pair<std::int64_t, double>>;
using underflow::TensorFindings;

namespace {

/// Returns the binade of the smallest nonzero value at the common steps, at the scale of the
/// counts; empty if there is none.
std::optional<int> smallest_log2(const TensorFindings& tensor,
                                 const std::vector<std::int64_t>& steps) {
  std::optional<int> least;
  for (const underflow::StepFindings& step : tensor.per_step) {
    if (step.binades.empty() || !std::binary_search(steps.begin(), steps.end(), step.step)) {
      continue;
    }
    const int at = step.binades.front().exponent + std::ilogb(step.loss_scale);
    least = std::min(least.value_or(at), at);
  }
  return least;
}

bool is_far(const TensorFindings& tensor, std::optional<int> smallest) {
  if (!tensor.zeros_may_be_flushed || !smallest || tensor.computed_in_fp16()) return false;
  return std::ranges::all_of(std::array{tensor.source_dtype, tensor.computed_dtype},
                             [&](const std::optional<Dtype>& dtype) {
                               if (!dtype) return true;
                               const Format format = format_of(*dtype);
                               return recommend::wide_range(format) &&
                                      *smallest - flushed_below_log2(format) >= kFarBinades;
                             });
}

/// Returns the number of zero updates beyond the share that the other run has.
std::uint64_t zeros_beyond(const UpdateCounts& counts, const UpdateCounts& other) {
  using Wide = unsigned __int128;
  if (other.pairs == 0) return 0;
  const auto as_other = static_cast<std::uint64_t>(Wide{other.zero} * counts.pairs / other.pairs);
  return counts.zero > as_other ? counts.zero - as_other : 0;
}

std::uint64_t lost_of(const UpdateCounts& counts, bool wide_weight) {
  return wide_weight ? 0 : counts.half.lost();
}

/// Returns true if a zero update, or its gradient, may have underflowed.
bool hides_updates(const ComparedTensor& t, const TensorFindings& of, bool far) {
  const bool makes_updates = t.loss_scaled || t.role == log::Role::update;
  return makes_updates && of.zeros_may_be_flushed && !far;
}

/// Returns the narrowest format that weights with updates are kept in; empty if none is known.
std::optional<Dtype> narrowest_kept(const underflow::LogFindings& log) {
  std::optional<Dtype> least;
  for (const TensorFindings& weight : log.tensors) {
    const auto kept = weight.updates ? underflow::kept_in(log, weight) : std::nullopt;
    if (!kept) continue;
    if (!least || format_of(*kept).precision < format_of(*least).precision) least = kept;
  }
  return least;
}

std::vector<CommonScalar> common(const Series& a, const Series& b) {
  const std::map<std::int64_t, double> of_a(a.begin(), a.end());
  std::vector<CommonScalar> out;
  for (const auto& [step, value] : b) {
    const auto found = of_a.find(step);
    if (found != of_a.end()) out.push_back({step, found->second, value});
  }
  return out;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool far(double a, double b) {
  if (same(a, b)) return false;
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  return std::abs(a - b) > kFarLosses * std::max(std::abs(a), std::abs(b));
}

void set_losses(Comparison& c) {
  const std::vector<CommonScalar> losses = common(c.runs.a.loss, c.runs.b.loss);
  FirstDifferences& parting = c.parting;
  parting.losses = losses.size();
  for (const CommonScalar& at : losses) {
    if (!same(at.a, at.b) && !parting.first_other) parting.first_other = at.step;
    if (!parting.first_other) parting.same_until = at.step;
    if (far(at.a, at.b) && !parting.first_far) parting.first_far = at.step;
  }
  if (losses.empty()) return;
  c.last_loss = losses.back();
  parting.far_at_first = parting.first_far == losses.front().step;
}

}  // namespace

void set_far(ComparedTensor& t, const Both<const TensorFindings*>& of) {
  const std::optional<int> a = smallest_log2(*of.a, t.steps), b = smallest_log2(*of.b, t.steps);
  t.smallest_log2 = a && b ? std::min(a, b) : a ? a : b;
  t.far = {is_far(*of.a, t.smallest_log2), is_far(*of.b, t.smallest_log2)};
}

Change change_of_updates(const Both<UpdateCounts>& updates,
                         const Both<std::uint64_t>& ineffective_updates,
                         const Both<std::uint64_t>& lost) {
  const std::uint64_t of_a = updates.a.pairs, of_b = updates.b.pairs;
  const Change change = real_change_of(ineffective_updates.a, of_a, ineffective_updates.b, of_b);
  const Change with_zeros =
      real_change_of(lost.a + updates.a.zero, of_a, lost.b + updates.b.zero, of_b);
  const bool turned = (change == Change::more && with_zeros == Change::less) ||
                      (change == Change::less && with_zeros == Change::more);
  return turned ? Change::unknown : change;
}

void sum_unmoved(Comparison& c, const Both<const underflow::LogFindings*>& runs) {
  RunTotals &a = c.runs.a, &b = c.runs.b;
  a.lost_updates = b.lost_updates = 0;
  a.kept = narrowest_kept(*runs.a);
  b.kept = narrowest_kept(*runs.b);
  for (const ComparedTensor& t : c.tensors) {
    a.zero_updates_hide |= hides_updates(t, runs.a->tensors[t.index.a], t.far.a);
    b.zero_updates_hide |= hides_updates(t, runs.b->tensors[t.index.b], t.far.b);
  }
  const auto beyond = [](const RunTotals& run, const UpdateCounts& counts,
                         const UpdateCounts& other) {
    return run.zero_updates_hide ? zeros_beyond(counts, other) : 0;
  };
  for (ComparedTensor& t : c.tensors) {
    if (!t.updates) continue;
    t.lost_updates = {lost_of(t.updates->a, t.wide_weight.a),
                      lost_of(t.updates->b, t.wide_weight.b)};
    a.lost_updates += t.lost_updates.a;
    b.lost_updates += t.lost_updates.b;
    t.ineffective_updates = {t.lost_updates.a + beyond(a, t.updates->a, t.updates->b),
                             t.lost_updates.b + beyond(b, t.updates->b, t.updates->a)};
  }
  if (!c.updates) return;
  a.ineffective_updates = a.lost_updates + beyond(a, c.updates->a, c.updates->b);
  b.ineffective_updates = b.lost_updates + beyond(b, c.updates->b, c.updates->a);
}

void add_scalars(RunTotals& run, const underflow::LogFindings& log) {
  for (const log::StepScalars& scalars : log.scalars) {
    ++run.steps;
    if (scalars.loss) {
      run.loss.emplace_back(scalars.step, *scalars.loss);
      if (!std::isfinite(*scalars.loss) && !run.loss_non_finite) {
        run.loss_non_finite = scalars.step;
      }
    }
    if (scalars.loss_scale) run.scales.emplace_back(scalars.step, *scalars.loss_scale);
    if (scalars.found_inf.value_or(false)) run.skipped.push_back(scalars.step);
  }
}

void set_parting(Comparison& c) {
  set_losses(c);
  const std::vector<CommonScalar> scales = common(c.runs.a.scales, c.runs.b.scales);
  const auto other = std::find_if(scales.begin(), scales.end(),
                                  [](const CommonScalar& at) { return !same(at.a, at.b); });
  if (other == scales.end()) return;
  c.parting.first_other_scale = other->step;
  c.parting.other_scale_at_first = other == scales.begin();
}

}  // namespace halfscope::analyzers::compare
