// SPDX-License-Identifier: Apache-2.0
#include "analyzers/step_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/flushed_profile.hpp"
#include "analyzers/overflow_cause.hpp"
#include "analyzers/provenance.hpp"
#include "analyzers/replay_loop.hpp"
#include "analyzers/step_facts.hpp"

namespace halfscope::analyzers {
namespace {

using log::Role;
using log::StepScalars;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_gradient(Role role) { return role == Role::weight_grad || role == Role::activation_grad; }
bool in_forward(Role role) {
  return role == Role::weight || role == Role::master_weight || role == Role::activation;
}

/// The larger of two magnitudes; NaN and infinity stay.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

std::optional<double> find(const StepScalars& scalars, const std::string& tag) {
  const auto at = scalars.more.find(tag);
  return at == scalars.more.end() ? std::nullopt : std::optional(at->second);
}

/// One step as it is put together.
struct Step {
  std::optional<double> max_abs;      ///< unscaled, over gradients; infinity and NaN are themselves
  std::optional<double> wide;         ///< the largest finite one of gradients computed in binary32
  std::optional<double> table_scale;  ///< that its gradients carry
  bool broken_forward = false;        ///< weights, activations or the loss hold infinity or NaN
  const StepScalars* scalars = nullptr;

  void see(double magnitude) { max_abs = max_abs ? larger(*max_abs, magnitude) : magnitude; }
  std::optional<double> scale() const {
    const bool known = scalars != nullptr && scalars->loss_scale.value_or(-1) >= 0;
    return known ? scalars->loss_scale : table_scale;
  }
};

struct Tensor {
  TensorSeries series;
  bool counted = false;
  Provenance provenance;
  std::vector<std::pair<std::int64_t, std::uint64_t>> zeros;
};

TensorFacts facts_of(const Frame& frame) {
  TensorFacts facts;
  facts.step = frame.step;
  const std::uint64_t inf = frame.table.infinities(), nan = frame.table.specials().nan;
  if (frame.table.largest()) facts.max_abs = to_double(*frame.table.largest()) / frame.scale;
  if (inf + nan != 0) facts.max_abs = kInfinity;
  const std::uint64_t n = frame.table.total() - inf - nan;
  if (!frame.moments || n == 0) return facts;
  facts.mean = frame.moments->mean / frame.scale;
  const double square =
      frame.moments->sum_squares / static_cast<double>(n) / frame.scale / frame.scale;
  facts.deviation = std::sqrt(std::max(0.0, square - facts.mean * facts.mean));
  return facts;
}

/// The scale of a run that never says one but says that it had none, or a fixed one.
std::optional<double> manifest_scale(const std::optional<log::Manifest>& manifest) {
  if (!manifest || !manifest->about.contains("loss_scaling")) return std::nullopt;
  const auto& policy = manifest->about["loss_scaling"];
  if (!policy.is_object()) return std::nullopt;
  const auto name = policy.find("policy"), scale = policy.find("scale");
  if (name == policy.end() || !name->is_string()) return std::nullopt;
  if (*name == "none") return 1.0;
  if (*name != "static" || scale == policy.end() || !scale->is_number()) return std::nullopt;
  return scale->get<double>();
}

}  // namespace

struct SeriesBuilder::Found {
  Found(std::string of, const Target& to) : log(std::move(of)), target(to), flushed(to) {}

  std::string log;
  Target target;
  FlushedSum flushed;
  std::optional<log::Manifest> manifest;
  std::map<std::int64_t, StepScalars> scalars;
  std::map<std::int64_t, Step> steps;
  std::map<std::string, std::size_t> index;
  std::vector<Tensor> tensors;

  Tensor& tensor_of(const Frame& frame);
  bool by_rounding() const;
  void add_scalars();
  void add_microbatches(Step& step) const;
  Seen seen(const Step& step, double max_abs, std::optional<double> scale, bool narrow) const;
  void add_step(StepSeries& series, std::int64_t number, const Step& step, bool narrow) const;
  void add_attempts(StepSeries& series, const Step& step, bool narrow) const;
};

SeriesBuilder::SeriesBuilder(std::string log, const Target& target)
    : found_(std::make_shared<Found>(std::move(log), target)) {}

Tensor& SeriesBuilder::Found::tensor_of(const Frame& frame) {
  const auto [at, is_new] = index.try_emplace(frame.name, tensors.size());
  if (is_new) {
    tensors.emplace_back();
    tensors.back().series.name = frame.name;
    tensors.back().series.role = frame.role;
    tensors.back().counted = frame.counted;
  }
  return tensors[at->second];
}

void SeriesBuilder::add(const Frame& frame) {
  Found& all = *found_;
  const bool nonfinite = frame.table.infinities() + frame.table.specials().nan != 0;
  if (in_forward(frame.role) && nonfinite) all.steps[frame.step].broken_forward = true;
  const bool gradient = is_gradient(frame.role);
  if (frame.counted) {
    Tensor& tensor = all.tensor_of(frame);
    tensor.provenance.add(frame);
    if (frame.table.specials().zero != 0) {
      tensor.zeros.emplace_back(frame.step, frame.table.specials().zero);
    }
    all.flushed.add(frame);
  }
  if (gradient) {
    Step& step = all.steps[frame.step];
    const double max_abs = facts_of(frame).max_abs;
    if (frame.computed_dtype == Dtype::f32 && std::isfinite(max_abs)) {
      step.wide = std::max(step.wide.value_or(0), max_abs);
    } else {
      step.see(max_abs);
    }
    if (frame.scale != 1.0) step.table_scale = frame.scale;
  }
  if (!gradient && frame.role != Role::weight && frame.role != Role::activation) return;
  TensorSeries& series = all.tensor_of(frame).series;
  series.shape = frame.shape;
  if (frame.role == Role::activation) return;
  series.has_moments = series.has_moments && frame.moments.has_value();
  series.steps.push_back(facts_of(frame));
}

void SeriesBuilder::add(const StepScalars& scalars) {
  found_->scalars.insert_or_assign(found_->scalars.end(), scalars.step, scalars);
}

void SeriesBuilder::add(const log::Manifest& manifest) { found_->manifest = manifest; }

void SeriesBuilder::add(const StepPeak& peak) {
  if (is_gradient(peak.role) && !(peak.max_abs == 0)) found_->steps[peak.step].see(peak.max_abs);
}

/// Whether an infinity in a gradient may be a value that was too large for a 16-bit format: surely
/// not where every recorded gradient was computed in a wider one.
bool SeriesBuilder::Found::by_rounding() const {
  bool any = false;
  for (const Tensor& tensor : tensors) {
    if (!is_gradient(tensor.series.role)) continue;
    TensorFindings told;
    tensor.provenance.tell(told, target.format);
    if (computed_narrow(told)) return true;
    any = true;
  }
  return !any;
}

/// Microbatches are recorded as they were: with the loss scale where gradients carry one.
void SeriesBuilder::Found::add_microbatches(Step& step) const {
  const bool scaled = manifest && manifest->gradients == log::ScaleState::scaled;
  const double scale = scaled ? step.scale().value_or(0) : 1.0;
  for (const auto& [tag, value] : step.scalars->more) {
    if (!tag.starts_with("max_abs/weight_grad/microbatch-") &&
        !tag.starts_with("max_abs/activation_grad/microbatch-")) {
      continue;
    }
    if (!std::isfinite(value)) step.see(value);
    if (std::isfinite(value) && usable_scale(scale)) step.see(std::abs(value) / scale);
  }
}

void SeriesBuilder::Found::add_scalars() {
  for (const auto& [number, known] : scalars) {
    Step& step = steps[number];
    step.scalars = &known;
    if (known.max_abs_weight_grad) step.see(std::abs(*known.max_abs_weight_grad));
    if (known.max_abs_activation_grad) step.see(std::abs(*known.max_abs_activation_grad));
    if (known.loss && !std::isfinite(*known.loss)) step.broken_forward = true;
    add_microbatches(step);
  }
}

/// An infinity that rounding to 16 bits made at a scale is one at every larger scale.
Seen SeriesBuilder::Found::seen(const Step& step, double max_abs, std::optional<double> scale,
                                bool narrow) const {
  if (std::isfinite(max_abs)) return {max_abs, 0};
  if (step.broken_forward || !narrow) return {max_abs, 0};
  if (!scale) scale = manifest_scale(manifest);
  return {max_abs, scale && *scale > 0 ? *scale : kInfinity};
}

/// All attempts of a step that was tried more than once: their tags count from 0.
void SeriesBuilder::Found::add_attempts(StepSeries& series, const Step& step, bool narrow) const {
  const std::size_t at = series.steps.size() - 1;
  std::vector<Seen> attempts;
  while (true) {
    const std::string end = "/attempt-" + std::to_string(attempts.size());
    const auto weights = find(*step.scalars, "max_abs/weight_grad" + end);
    const auto activations = find(*step.scalars, "max_abs/activation_grad" + end);
    if (!weights && !activations) break;
    const auto scale = find(*step.scalars, "loss_scale" + end);
    if (attempts.empty()) series.recorded_scale[at] = scale;
    const double max_abs = larger(std::abs(weights.value_or(0)), std::abs(activations.value_or(0)));
    attempts.push_back(seen(step, max_abs, scale, narrow));
  }
  if (attempts.empty()) return;
  series.seen[at] = attempts.front();
  series.retried[at] = std::move(attempts);
}

void SeriesBuilder::Found::add_step(StepSeries& series, std::int64_t number, const Step& step,
                                    bool narrow) const {
  const StepScalars none;
  const StepScalars& told = step.scalars != nullptr ? *step.scalars : none;
  const bool skipped = told.found_inf.value_or(false);
  if (!step.max_abs && !skipped) {
    throw log::BadInput(fmt::format(
        "{}: step {} has neither max_abs/weight_grad nor max_abs/activation_grad, nor tables of "
        "gradients, so that whether it overflows is not known; record them at every step "
        "(docs/recording.md), or choose steps that have them with --step",
        log::printable(log), number));
  }
  series.steps.push_back(number);
  series.recorded_scale.push_back(step.scale());
  series.recorded_skip.push_back(told.found_inf);
  Seen now = seen(step, step.max_abs.value_or(kInfinity), step.scale(), narrow || !step.max_abs);
  const bool explained = !std::isfinite(now.max_abs) ||
                         (step.scale() && judge(now, *step.scale()) == Verdict::overflow);
  if (skipped && !explained) {
    series.unexplained.emplace_back(series.steps.size() - 1, now.max_abs);
    now = seen(step, kInfinity, step.scale(), true);
  }
  series.seen.push_back(now);
  if (step.scalars != nullptr) add_attempts(series, step, narrow);
}

namespace {

/// The steps [first, end) of a series, none of which had finite gradients.
struct Streak {
  std::size_t first = 0, end = 0;
  double least = kInfinity, most = 0;  ///< scales
};

bool failed(const StepSeries& series, std::size_t at, Streak& streak) {
  const auto retried = series.retried.find(at);
  const std::size_t n = retried == series.retried.end() ? 1 : retried->second.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Seen& seen = retried == series.retried.end() ? series.seen[at] : retried->second[i];
    if (std::isfinite(seen.max_abs) || seen.overflow_from == 0) return false;
  }
  const Seen& last = retried == series.retried.end() ? series.seen[at] : retried->second.back();
  // At a scale that is not known, or 0, a failure tells nothing.
  if (std::isfinite(last.overflow_from)) streak.least = std::min(streak.least, last.overflow_from);
  const double first = series.seen[at].overflow_from;
  if (std::isfinite(first)) streak.most = std::max(streak.most, first);
  return true;
}

/// The largest magnitude of up to three finite steps on either side; 0 where there is none.
double near(const StepSeries& series, const Streak& streak) {
  double largest = 0;
  const auto take = [&](std::size_t at, int& left) {
    if (!std::isfinite(series.seen[at].max_abs)) return;
    largest = std::max(largest, series.seen[at].max_abs);
    --left;
  };
  int before = 3, after = 3;
  for (std::size_t i = streak.first; i > 0 && before > 0; --i) take(i - 1, before);
  for (std::size_t i = streak.end; i < series.seen.size() && after > 0; ++i) take(i, after);
  return largest;
}

/// Where lowering the scale by far did not help although gradients nearby leave much room, no scale
/// is to blame: overflow_cause.hpp.
void find_no_cure(StepSeries& series) {
  for (std::size_t i = 0; i < series.seen.size(); ++i) {
    Streak streak{i, i};
    while (streak.end < series.seen.size() && failed(series, streak.end, streak)) ++streak.end;
    if (streak.end == i) continue;
    i = streak.end - 1;
    const double lowered = std::log2(streak.most) - std::log2(streak.least);
    if (!(streak.most > 0) || !(lowered >= kLowered)) continue;
    const double largest = near(series, streak);
    const double limit = std::log2(to_double(boundaries(kBinary16).overflow));
    const double reaches = largest > 0 ? std::log2(largest) : limit;
    if (!(limit - reaches - std::log2(streak.least) >= kOutOfReach)) continue;
    for (std::size_t at = streak.first; at < streak.end; ++at) {
      series.seen[at].overflow_from = 0;
      const auto retried = series.retried.find(at);
      if (retried == series.retried.end()) continue;
      for (Seen& seen : retried->second) seen.overflow_from = 0;
    }
  }
}

/// Infinities of a run that says it computed in wide formats, with the scale of their step: those
/// that a cast to FP16 by hand may have made.
using MaybeCast = std::vector<std::pair<std::size_t, double>>;

/// Where finite gradients nearby come close to what FP16 holds at that scale, an infinity is taken
/// as one of FP16: a wide format would have had no reason to overflow just there.
void find_casts(StepSeries& series, const MaybeCast& maybe) {
  for (std::size_t i = 0; i < maybe.size();) {
    std::size_t end = i + 1;
    while (end < maybe.size() && maybe[end].first == maybe[end - 1].first + 1) ++end;
    double most = 0;
    for (std::size_t k = i; k < end; ++k) most = std::max(most, maybe[k].second);
    const double largest = near(series, {maybe[i].first, maybe[end - 1].first + 1});
    const bool close = reaches(largest * std::exp2(kNearLimit), most, kOverflow);
    for (; i < end; ++i) {
      if (close) series.seen[maybe[i].first].overflow_from = maybe[i].second;
    }
  }
}

}  // namespace

std::optional<StepSeries> SeriesBuilder::finish() {
  Found& all = *found_;
  if (all.scalars.empty()) return std::nullopt;
  all.add_scalars();
  const bool narrow = all.by_rounding();
  for (auto& [number, step] : all.steps) {
    // What a 16-bit run keeps in binary32, as batch normalization's parameters, does not overflow
    // where its other gradients do.
    if (step.wide && (!narrow || !step.max_abs)) step.see(*step.wide);
  }
  StepSeries series;
  series.log = all.log;
  series.manifest = all.manifest;
  MaybeCast maybe_cast;
  for (const auto& [number, step] : all.steps) {
    all.add_step(series, number, step, narrow);
    const Seen& seen = series.seen.back();
    const double scale = step.scale().value_or(0);
    const bool wide = !narrow && !step.broken_forward && seen.overflow_from == 0;
    if (!std::isfinite(seen.max_abs) && wide && scale > 0 && std::isfinite(scale)) {
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
  for (Tensor& tensor : all.tensors) {
    TensorFindings told;
    tensor.provenance.tell(told, all.target.format);
    if (tensor.counted && !told.underflow_identifiable) {
      for (const auto& [step, zeros] : tensor.zeros) all.flushed.add_perhaps(step, zeros);
    }
    std::stable_sort(tensor.series.steps.begin(), tensor.series.steps.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    if (tensor.series.role != Role::loss) series.tensors.push_back(std::move(tensor.series));
  }
  series.flushed = all.flushed.finish();
  return series;
}

}  // namespace halfscope::analyzers
