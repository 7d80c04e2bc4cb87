// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "analyzers/frames/microbatches.hpp"
#include "analyzers/replay/flushed_profile.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/replay/step_series_cause.hpp"
#include "analyzers/replay/step_series_known.hpp"
#include "analyzers/replay/step_series_step.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::replay {

using frames::Frame;
using underflow::manifest_scale;
using underflow::Target;

namespace {

using log::Role;

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

struct SeriesBuilder::Found {
  struct Tensor {
    TensorSeries series;
    bool loss_scaled = false;
    underflow::Provenance provenance;
    std::vector<std::pair<std::int64_t, std::uint64_t>> zeros;
  };

  Found(std::string of, const Target& to, std::optional<double> scale)
      : log(std::move(of)), target(to), flushed(to), recorded_scale(scale) {}

  std::string log;
  Target target;
  FlushedSum flushed;
  std::optional<double> recorded_scale;
  std::optional<log::Manifest> manifest;
  std::map<std::int64_t, SeriesStep> steps;
  /// Steps whose weights, activations or loss hold infinity or NaN; some are not in `steps`.
  std::set<std::int64_t> broken_forward;
  std::map<std::int64_t, double> losses;  ///< finite losses scaled in FP16, by step
  std::map<std::string, std::size_t> index;
  std::deque<Tensor> tensors;
  bool any_scalars = false, any_bounds = false;
  bool of_other_tool = false, any_magnitude = false;
  unsigned ranks = 1;
  Recorded recorded;
  underflow::Bfloat16Run bfloat16;
  underflow::ComputedFormats formats;  ///< set from the tensors after all are read
  frames::SumFormat sums;
  std::optional<double> untested;  ///< untested_to()

  Tensor& tensor_of(const Frame& frame);
  void add_gradient(const Frame& frame, double max_abs);
  void add_loss(std::int64_t step, double magnitude);
  void add_scalars(const log::StepScalars& scalars);
  void tell_formats();
  bool scalars_alone() const { return of_other_tool && !any_magnitude; }
  bool carries_scale() const { return manifest && manifest->gradients == log::ScaleState::scaled; }
  std::optional<double> scale_of(const SeriesStep& step) const;
  bool tested(const SeriesStep& step, std::optional<double> scale) const;
  AttemptMagnitudes rounded(std::int64_t number, double max_abs, std::optional<double> scale) const;
  AttemptMagnitudes seen(std::int64_t number, const LargestMagnitudes& largest,
                         std::optional<double> scale) const;
  void add_step(StepSeries& series, std::int64_t number, SeriesStep& step) const;
  void add_attempts(StepSeries& series, std::int64_t number, const SeriesStep& step) const;
  void add_tensors(StepSeries& series);
};

SeriesBuilder::SeriesBuilder(std::string log, const Target& target,
                             std::optional<double> recorded_scale)
    : found_(std::make_shared<Found>(std::move(log), target, recorded_scale)) {}

SeriesBuilder::Found::Tensor& SeriesBuilder::Found::tensor_of(const Frame& frame) {
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
  Found& all = *found_;
  all.any_magnitude = true;
  if (underflow::breaks_forward(frame.role, frame.scale, frame.table.nan(), frame.table.inf())) {
    all.broken_forward.insert(frame.step);
  }
  const bool gradient = is_gradient(frame.role);
  const bool parameter = frame.role == Role::weight || frame.role == Role::activation;
  if (!frame.loss_scaled && !gradient && !parameter) return;
  Found::Tensor& tensor = all.tensor_of(frame);
  tensor.provenance.add(frame, all.target.format);
  if (frame.loss_scaled) {
    if (const std::uint64_t zeros = frame.table.zero().low; zeros != 0) {
      tensor.zeros.emplace_back(frame.step, zeros);
    }
    all.flushed.add(frame);
    all.any_bounds = all.any_bounds || !frame.table.is_exact();
  }
  tensor.series.shape = frame.shape;
  if (frame.role == Role::loss) all.add_loss(frame.step, facts_of(frame).max_abs);
  if (!gradient && frame.role != Role::weight) return;
  const TensorFacts facts = facts_of(frame);
  if (gradient) all.add_gradient(frame, facts.max_abs);
  tensor.series.has_moments = tensor.series.has_moments && frame.moments.has_value();
  tensor.series.steps.push_back(facts);
}

void SeriesBuilder::Found::add_gradient(const Frame& frame, double max_abs) {
  SeriesStep& step = steps[frame.step];
  step.add_table(frame.role);
  if (frame.role == Role::weight_grad) sums.add(frame.source_dtype);
  const bool wide = frame.computed_dtype == Dtype::f32 && std::isfinite(max_abs);
  (wide ? step.wide : step.largest).see(frame.role, max_abs);
  if (frame.scale != 1.0) step.table_scale = frame.scale;
  const bool as_computed = underflow::fits_as_is(frame.table) || !frame.table.largest();
  if (frame.table.inf().low != 0 && frame.scale == 1.0 && as_computed) {
    step.infinite_unscaled = true;
  }
}

void SeriesBuilder::Found::add_loss(std::int64_t step, double magnitude) {
  if (!std::isfinite(magnitude)) return;
  double& loss = losses[step];
  loss = std::max(loss, magnitude);
}

void SeriesBuilder::add(const log::StepScalars& scalars) { found_->add_scalars(scalars); }

void SeriesBuilder::add(const log::Manifest& manifest) { found_->manifest = manifest; }

void SeriesBuilder::add(const frames::LogKind&) { found_->of_other_tool = true; }

void SeriesBuilder::add(const frames::StepPeak& peak) {
  found_->any_magnitude |= !peak.tensor.empty() || peak.max_abs != 0;
  if (peak.max_abs == 0) return;
  if (is_gradient(peak.role)) {
    found_->steps[peak.step].largest.see(peak.max_abs);
  } else if (peak.role == Role::loss) {
    found_->add_loss(peak.step, peak.max_abs);
  }
}

void SeriesBuilder::add_rank(const std::vector<log::StepScalars>& scalars) {
  ++found_->ranks;
  for (const log::StepScalars& step : scalars) found_->add_scalars(step);
}

/// Microbatches are recorded unchanged: with the loss scale if gradients carry one.
void SeriesBuilder::Found::add_scalars(const log::StepScalars& scalars) {
  if (scalars_alone()) return;  // a log's tensors and peaks come before its scalars
  std::optional<double> scale = 1.0;
  if (carries_scale()) scale = scalars.loss_scale ? scalars.loss_scale : recorded_scale;
  if (!frames::usable_scale(scale.value_or(0))) scale.reset();
  steps[scalars.step].add(scalars, scale, recorded.scalars);
  any_scalars = true;
  if (scalars.loss && !std::isfinite(*scalars.loss)) broken_forward.insert(scalars.step);
}

void SeriesBuilder::Found::tell_formats() {
  for (const Tensor& tensor : tensors) {
    underflow::TensorFindings told;
    told.role = tensor.series.role;
    tensor.provenance.tell(told, target.format);
    formats.add(told);
    told.loss_scaled = tensor.loss_scaled;
    bfloat16.add(told);
    if (told.role == Role::weight_grad) ++recorded.tables.weights;
    if (told.role == Role::activation_grad) ++recorded.tables.activations;
  }
}

/// Returns the loss scale of a step: the recorded one; else the user's, if gradients carry a scale;
/// else that of the histograms or the manifest.
std::optional<double> SeriesBuilder::Found::scale_of(const SeriesStep& step) const {
  if (step.loss_scale) return step.loss_scale;
  if (carries_scale() && recorded_scale) return recorded_scale;
  return step.table_scale ? step.table_scale : manifest_scale(manifest);
}

/// Returns true if the run itself tested the step's weight gradients and found them finite.
bool SeriesBuilder::Found::tested(const SeriesStep& step, std::optional<double> scale) const {
  return untested && step.found_inf == false && step.told_found_inf == recorded.ranks.weights &&
         scale && *scale > *untested;
}

/// Returns an infinite or NaN magnitude that rounding to 16 bits made at a scale: larger scales
/// make it too. If the forward pass holds infinity or NaN, every scale does.
AttemptMagnitudes SeriesBuilder::Found::rounded(std::int64_t number, double max_abs,
                                                std::optional<double> scale) const {
  if (broken_forward.count(number) != 0) return {max_abs, 0};
  if (!scale) scale = manifest_scale(manifest);
  return {max_abs, scale && *scale > 0 ? *scale : kInfinity};
}

/// Returns an attempt's gradients. A magnitude that 16-bit rounding made 0 may hide larger ones.
AttemptMagnitudes SeriesBuilder::Found::seen(std::int64_t number, const LargestMagnitudes& largest,
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
void SeriesBuilder::Found::add_attempts(StepSeries& series, std::int64_t number,
                                        const SeriesStep& step) const {
  if (step.attempts.empty()) return;
  const std::size_t at = series.steps.size() - 1;
  std::vector<AttemptMagnitudes> attempts;
  const auto add = [&](const SeriesAttempt& attempt) {
    attempts.push_back(seen(number, attempt.largest, attempt.scale));
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
  series.recorded_scale[at] = first == step.attempts.end() ? std::nullopt : first->second.scale;
  series.seen[at] = attempts.front();
  series.retried[at] = std::move(attempts);
}

void SeriesBuilder::Found::add_step(StepSeries& series, std::int64_t number,
                                    SeriesStep& step) const {
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
  now.weights_partial = !recorded.all_weights(step);
  if (clean) now.clean_to = *least;
  series.steps.push_back(number);
  series.seen.push_back(now);
  series.recorded_scale.push_back(scale);
  series.recorded_skip.push_back(step.found_inf);
  add_attempts(series, number, step);
}

void SeriesBuilder::Found::add_tensors(StepSeries& series) {
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
    if (tensor.series.role == Role::weight_grad) tensor.series.ranks = recorded.ranks.weights;
    if (tensor.series.role == Role::activation_grad) {
      tensor.series.ranks = recorded.ranks.activations;
    }
    if (tensor.series.role != Role::loss) series.tensors.push_back(std::move(tensor.series));
  }
  series.flushed = flushed.finish();
}

std::optional<StepSeries> SeriesBuilder::finish() {
  Found& all = *found_;
  if (!all.any_scalars || all.scalars_alone()) return std::nullopt;
  all.tell_formats();
  all.recorded.ranks = ranks_wanted(all.ranks, all.manifest);
  all.untested = untested_to(all.manifest, all.steps);
  StepSeries series;
  series.log = all.log;
  series.manifest = all.manifest;
  series.from_buckets = all.any_bounds;
  series.in_bfloat16 = all.bfloat16.is_one();
  MaybeCast maybe_cast;
  for (auto& [number, step] : all.steps) {
    all.add_step(series, number, step);
    const bool wide = all.formats.all_wide() && all.broken_forward.count(number) == 0 &&
                      series.seen.back().overflow_from == 0;
    const double scale = all.scale_of(step).value_or(0);
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
  all.add_tensors(series);
  return series;
}

}  // namespace halfscope::analyzers::replay
