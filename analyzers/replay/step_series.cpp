// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/replay/replay_loop.hpp"

namespace halfscope::analyzers::replay {

using frames::Frame;
using underflow::manifest_scale;
using underflow::Target;

namespace {

using log::Role;

/// Returns true for the roles of OfGradients: gradients of all ranks, after their reduction.
bool has_ranks(Role role) { return role == Role::weight_grad || role == Role::activation_grad; }

TensorFacts facts_of(const Frame& frame) {
  TensorFacts facts;
  facts.step = frame.step;
  const bool nonfinite = frame.table.inf().low + frame.table.nan().low != 0;
  if (frame.table.largest()) facts.max_abs = to_double(*frame.table.largest()) / frame.scale;
  facts.max_abs = std::max(facts.max_abs, frame.rank_max_abs);
  if (nonfinite || !std::isfinite(frame.rank_max_abs)) facts.max_abs = kInfinity;
  facts.ranks = frame.ranks;
  const std::uint64_t n = frame.table.zero().low + frame.table.finite_nonzero().low;
  if (!frame.moments || n == 0) return facts;
  facts.mean = frame.moments->mean / frame.scale;
  const double square =
      frame.moments->sum_squares / static_cast<double>(n) / frame.scale / frame.scale;
  facts.deviation = std::sqrt(std::max(0.0, square - facts.mean * facts.mean));
  return facts;
}

[[noreturn]] void refuse_blind(const std::string& log, std::int64_t step) {
  throw frames::InputNeedsOption(
      fmt::format("{}: step {} has no magnitude of gradients (neither max_abs/weight_grad nor "
                  "max_abs/activation_grad, nor histograms of them), so it is unknown if it "
                  "overflows; record them at every step "
                  "(docs/recording.md), or choose steps that have them with ",
                  log::printable(log), step) +
      frames::Option::step);
}

/// Returns the last attempt of a step, from its own tags and from everything else recorded of the
/// step, which shows if gradients are missing.
AttemptMagnitudes last_attempt(const AttemptMagnitudes& tags, const AttemptMagnitudes& step) {
  if (std::isfinite(tags.max_abs)) {
    AttemptMagnitudes all = step;
    all.max_abs = larger(all.max_abs, tags.max_abs);
    if (step.weights_partial && tags.weights && !tags.weights_partial) {
      all.weights = tags.weights;
      all.weights_partial = false;
    }
    return all;
  }
  if (std::isfinite(step.max_abs)) return tags;
  return {tags.max_abs, std::min(tags.overflow_from, step.overflow_from)};
}

}  // namespace

SeriesBuilder::Tensor& SeriesBuilder::tensor_of(const Frame& frame) {
  const auto [at, is_new] = index.try_emplace(frame.name, tensors.size());
  if (is_new) {
    tensors.emplace_back();
    tensors.back().series.name = frame.name;
    tensors.back().series.role = frame.role;
    tensors.back().loss_scaled = frame.loss_scaled;
  }
  return tensors[at->second];
}

void SeriesBuilder::add(const Frame& frame) {
  any_magnitude = true;
  if (underflow::breaks_forward(frame.role, frame.scale, frame.table.nan(), frame.table.inf())) {
    broken_forward.insert(frame.step);
  }
  const bool gradient = is_gradient(frame.role);
  const bool parameter = frame.role == Role::weight || frame.role == Role::activation;
  if (!frame.loss_scaled && !gradient && !parameter) return;
  Tensor& tensor = tensor_of(frame);
  tensor.provenance.add(frame, target.format);
  if (frame.loss_scaled) {
    if (const std::uint64_t zeros = frame.table.zero().low; zeros != 0) {
      tensor.zeros.emplace_back(frame.step, zeros);
    }
    flushed.add(frame);
    any_bounds = any_bounds || !frame.table.is_exact();
  }
  tensor.series.shape = frame.shape;
  if (frame.role == Role::loss) add_loss(frame.step, facts_of(frame).max_abs);
  if (!gradient && frame.role != Role::weight) return;
  const TensorFacts facts = facts_of(frame);
  if (gradient) add_gradient(frame, facts.max_abs);
  tensor.series.has_moments = tensor.series.has_moments && frame.moments.has_value();
  tensor.series.steps.push_back(facts);
}

void SeriesBuilder::add_gradient(const Frame& frame, double max_abs) {
  SeriesStep& step = steps[frame.step];
  if (has_ranks(frame.role)) ++step.tables.of(frame.role);
  if (frame.role == Role::weight_grad) sums.add(frame.source_dtype);
  const bool wide = frame.computed_dtype == Dtype::f32 && std::isfinite(max_abs);
  (wide ? step.wide : step.largest).see(frame.role, max_abs);
  if (frame.scale != 1.0) step.table_scale = frame.scale;
  const bool as_computed = underflow::fits_as_is(frame.table) || !frame.table.largest();
  if (frame.table.inf().low != 0 && frame.scale == 1.0 && as_computed) {
    step.infinite_unscaled = true;
  }
}

void SeriesBuilder::add_loss(std::int64_t step, double magnitude) {
  if (!std::isfinite(magnitude)) return;
  double& loss = losses[step];
  loss = std::max(loss, magnitude);
}

void SeriesBuilder::add(const frames::StepPeak& peak) {
  any_magnitude |= !peak.tensor.empty() || peak.max_abs != 0;
  if (peak.max_abs == 0) return;
  if (is_gradient(peak.role)) {
    steps[peak.step].largest.see(peak.max_abs);
  } else if (peak.role == Role::loss) {
    add_loss(peak.step, peak.max_abs);
  }
}

void SeriesBuilder::add_rank(const std::vector<log::StepScalars>& scalars) {
  ++ranks;
  for (const log::StepScalars& step : scalars) add(step);
}

/// Microbatches are recorded unchanged: with the loss scale if gradients carry one.
void SeriesBuilder::add(const log::StepScalars& scalars) {
  if (scalars_alone()) return;  // a log's tensors and peaks come before its scalars
  std::optional<double> scale = 1.0;
  if (carries_scale()) scale = scalars.loss_scale ? scalars.loss_scale : recorded_scale;
  if (!frames::usable_scale(scale.value_or(0))) scale.reset();
  steps[scalars.step].add(scalars, scale, recorded);
  any_scalars = true;
  if (scalars.loss && !std::isfinite(*scalars.loss)) broken_forward.insert(scalars.step);
}

void SeriesBuilder::tell_formats() {
  for (const Tensor& tensor : tensors) {
    underflow::TensorFindings told;
    told.role = tensor.series.role;
    tensor.provenance.tell(told, target.format);
    formats.add(told);
    told.loss_scaled = tensor.loss_scaled;
    bfloat16.add(told);
    if (has_ranks(told.role)) ++recorded.tables.of(told.role);
  }
}

/// Returns the loss scale of a step: the recorded one; else the user's, if gradients carry a scale;
/// else that of the histograms or the manifest.
std::optional<double> SeriesBuilder::scale_of(const SeriesStep& step) const {
  if (step.loss_scale) return step.loss_scale;
  if (carries_scale() && recorded_scale) return recorded_scale;
  return step.table_scale ? step.table_scale : manifest_scale(manifest);
}

/// Returns true if the run itself tested the step's weight gradients and found them finite.
bool SeriesBuilder::tested(const SeriesStep& step, std::optional<double> scale) const {
  return untested && step.found_inf == false && step.told_found_inf == recorded.ranks.weights &&
         scale && *scale > *untested;
}

/// Returns an infinite or NaN magnitude that rounding to 16 bits made at a scale: larger scales
/// make it too. If the forward pass holds infinity or NaN, every scale does.
AttemptMagnitudes SeriesBuilder::rounded(std::int64_t number, double max_abs,
                                         std::optional<double> scale) const {
  if (broken_forward.count(number) != 0) return {max_abs, 0};
  if (!scale) scale = manifest_scale(manifest);
  return {max_abs, scale && *scale > 0 ? *scale : kInfinity};
}

/// Returns an attempt's gradients. A magnitude that 16-bit rounding made 0 may hide larger ones.
AttemptMagnitudes SeriesBuilder::seen(std::int64_t number, const LargestMagnitudes& largest,
                                      std::optional<double> scale) const {
  const double max_abs = largest.all.value_or(0);
  const bool wide = formats.all_wide();
  AttemptMagnitudes seen = std::isfinite(max_abs) || wide ? AttemptMagnitudes{max_abs, 0}
                                                          : rounded(number, max_abs, scale);
  if (recorded.has_weights()) seen.weights = largest.weights.value_or(0);
  if (!wide && (max_abs == 0 || seen.weights == 0.0)) {
    if (!scale) scale = manifest_scale(manifest);
    seen.zero_to = scale.value_or(1);
  }
  return seen;
}

/// Adds all attempts of a step that was tried more than once. Other records of the step are the
/// last attempt's. Missing attempts count as one, because their number is unknown.
void SeriesBuilder::add_attempts(StepSeries& series, std::int64_t number,
                                 const SeriesStep& step) const {
  if (step.attempts.empty()) return;
  const std::size_t at = series.steps.size() - 1;
  std::vector<AttemptMagnitudes> attempts;
  const auto add = [&](const SeriesAttempt& attempt) {
    attempts.push_back(seen(number, attempt.largest, attempt.loss_scale));
    attempts.back().partial = recorded.partial(attempt);
    attempts.back().weights_partial = attempt.told.weights != recorded.ranks.weights;
  };
  unsigned next = 0;
  for (const auto& [which, attempt] : step.attempts) {
    if (which != next) add({});
    add(attempt);
    next = which + 1;
  }
  attempts.back() = last_attempt(attempts.back(), series.seen[at]);
  for (AttemptMagnitudes& attempt : attempts) attempt.loss = series.seen[at].loss;
  const auto first = step.attempts.find(0);
  series.recorded_scale[at] =
      first == step.attempts.end() ? std::nullopt : first->second.loss_scale;
  series.seen[at] = attempts.front();
  series.retried[at] = std::move(attempts);
}

void SeriesBuilder::add_step(StepSeries& series, std::int64_t number, SeriesStep& step) const {
  const std::optional<double> scale = scale_of(step);
  step.unscale_microbatches(scale);
  step.take_sums(sums.is_fp32(), recorded.ranks.activations);
  step.take_wide(formats.any_narrow_gradient());
  const bool skipped = step.found_inf.value_or(false);
  // Ranks may have different scales: an infinity may be from the largest, a zero from the smallest.
  const auto computed = step.infinite_unscaled ? scale.value_or(1.0) : scale;
  const auto sure = step.loss_scale ? std::optional(step.most_scale) : computed;
  const auto least = step.loss_scale ? std::optional(step.least_scale) : scale;
  const bool clean = tested(step, least);
  const bool blind = !step.largest.all;
  if (blind && !skipped && !clean) refuse_blind(log, number);
  AttemptMagnitudes now =
      blind && skipped ? rounded(number, kInfinity, sure) : seen(number, step.largest, sure);
  if (const auto loss = losses.find(number); loss != losses.end()) now.loss = loss->second;
  if (least && std::isfinite(now.zero_to)) now.zero_to = *least;
  const bool part = recorded.partial(step) || (blind && !skipped);
  if (skipped && std::isfinite(now.max_abs) &&
      !(sure && judge(now, *sure) == OverflowVerdict::overflow)) {
    const bool known = !part && sure && *sure > 0;  // otherwise the step may simply have overflowed
    if (known) series.unexplained.emplace_back(series.steps.size(), now.max_abs);
    now = rounded(number, kInfinity, sure);
  }
  now.partial = part;
  now.weights_partial = !recorded.knows(step, Role::weight_grad);
  if (clean) now.clean_to = *least;
  series.steps.push_back(number);
  series.seen.push_back(now);
  series.recorded_scale.push_back(scale);
  series.recorded_skip.push_back(step.found_inf);
  add_attempts(series, number, step);
}

void SeriesBuilder::add_tensors(StepSeries& series) {
  series.tensors.reserve(tensors.size());
  for (; !tensors.empty(); tensors.pop_front()) {
    Tensor& tensor = tensors.front();
    underflow::TensorFindings told;
    tensor.provenance.tell(told, target.format);
    if (tensor.loss_scaled && !told.underflow_identifiable) {
      for (const auto& [step, zeros] : tensor.zeros) flushed.add_perhaps(step, zeros);
    }
    std::stable_sort(tensor.series.steps.begin(), tensor.series.steps.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    const Role role = tensor.series.role;
    if (has_ranks(role)) tensor.series.ranks = recorded.ranks.of(role);
    if (role != Role::loss) series.tensors.push_back(std::move(tensor.series));
  }
  series.flushed = flushed.finish();
}

std::optional<StepSeries> SeriesBuilder::finish() {
  if (!any_scalars || scalars_alone()) return std::nullopt;
  tell_formats();
  recorded.ranks = ranks_wanted(ranks, manifest);
  untested = untested_to(manifest, steps);
  StepSeries series;
  series.log = log;
  series.manifest = manifest;
  series.from_buckets = any_bounds;
  series.in_bfloat16 = bfloat16.is_one();
  MaybeCast maybe_cast;
  for (auto& [number, step] : steps) {
    add_step(series, number, step);
    const bool wide = formats.all_wide() && broken_forward.count(number) == 0 &&
                      series.seen.back().overflow_from == 0;
    const double scale = scale_of(step).value_or(0);
    if (!std::isfinite(series.seen.back().max_abs) && wide && scale > 0 && std::isfinite(scale)) {
      maybe_cast.emplace_back(series.seen.size() - 1, scale);
    }
  }
  const auto known = [](const auto& value) { return value.has_value(); };
  if (std::none_of(series.recorded_scale.begin(), series.recorded_scale.end(), known)) {
    series.recorded_scale.clear();
  }
  if (std::none_of(series.recorded_skip.begin(), series.recorded_skip.end(), known)) {
    series.recorded_skip.clear();
  }
  find_casts(series, maybe_cast);
  find_no_cure(series);
  add_tensors(series);
  return series;
}

}  // namespace halfscope::analyzers::replay
