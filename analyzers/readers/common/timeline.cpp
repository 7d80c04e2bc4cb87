// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "analyzers/readers/common/roles.hpp"

namespace halfscope::analyzers::readers::common {

using frames::SkippedSteps;

namespace {

using frames::Frame;
using frames::Notes;
using frames::RoleSource;
using frames::StepPeak;
using log::printable;
using log::Role;

constexpr std::array kGradients = {Role::weight_grad, Role::activation_grad};

/// The index in kGradients; empty for all other roles.
std::optional<std::size_t> gradient_index(Role role) {
  for (std::size_t i = 0; i < kGradients.size(); ++i) {
    if (kGradients[i] == role) return i;
  }
  return std::nullopt;
}

/// Bounds with a ratio up to this count as one number: printed decimals, a narrow bucket.
constexpr double kOneNumber = 1.01;

bool is_one_number(const Extreme& e) { return !e.unknown && e.at_most <= e.at_least * kOneNumber; }

/// Just below the outermost edge of TensorBoard's histograms, 9.9e19. Values above are infinite in
/// binary16 at every scale in use, even if they were finite in the source.
constexpr Magnitude kBeyondAll{66, 0};

/// The extremes of a table. Its values carry `scale`.
Extreme extreme_of(const BoundedTable& table, double scale) {
  Extreme e;
  e.nan = table.nan().low > 0;
  const auto beyond = [](const Span& span) {
    return span.count > 0 && !span.last && span.first && *span.first >= kBeyondAll;
  };
  e.infinite =
      table.inf().low > 0 || std::any_of(table.spans().begin(), table.spans().end(), beyond);
  const auto largest = table.largest();
  const bool perhaps = !e.nan && !e.infinite && table.nan().high + table.inf().high > 0;
  e.unknown = perhaps || !table.nonfinite_known() ||
              (!largest && table.finite_nonzero().high > 0 && !e.infinite);
  if (largest) e.at_most = to_double(*largest) / scale;
  if (const auto least = table.largest_at_least()) e.at_least = to_double(*least) / scale;
  return e;
}

Extreme extreme_of(const StepPeak& peak) {
  Extreme e;
  e.nan = std::isnan(peak.max_abs);
  e.infinite = std::isinf(peak.max_abs);
  if (e.nan || e.infinite) return e;
  e.at_most = peak.max_abs;
  e.at_least = peak.at_least.value_or(peak.max_abs);
  return e;
}

std::optional<double> value_of(const Extreme& e) {
  if (e.nan) return std::numeric_limits<double>::quiet_NaN();
  if (e.infinite) return std::numeric_limits<double>::infinity();
  return is_one_number(e) ? std::optional(e.at_most) : std::nullopt;
}

/// "'a', 'b' and 3 more"
std::string list_of(const std::vector<std::string>& names, std::size_t most) {
  std::string list;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    list += (i == 0 ? "'" : ", '") + printable(names[i]) + "'";
  }
  if (names.size() > most) list += fmt::format(" and {} more", names.size() - most);
  return list;
}

/// The tags, those that contain "scale" first.
std::vector<std::string> by_likeness(const std::set<std::string>& tags) {
  std::vector<std::string> list(tags.begin(), tags.end());
  std::stable_partition(list.begin(), list.end(), [](const std::string& tag) {
    return tag.find("scale") != std::string::npos || tag.find("Scale") != std::string::npos;
  });
  return list;
}

constexpr std::size_t kMostTags = 1000;  // that are kept for a message
constexpr std::size_t kTagsShown = 12;

void tell_odd_scales(const std::set<std::int64_t>& steps, const std::string& log, Notes& notes) {
  if (steps.empty()) return;
  notes.add(fmt::format(
      "{}: a loss scale is infinite, nan or negative at {} {}, first at step {}; it is skipped",
      printable(log), steps.size(), steps.size() == 1 ? "step" : "steps", *steps.begin()));
}

}  // namespace

bool skips_steps(const std::set<std::int64_t>& steps) {
  const auto apart = [](std::int64_t a, std::int64_t b) { return b - 1 != a; };
  return std::adjacent_find(steps.begin(), steps.end(), apart) != steps.end();
}

bool can_be_scale(double scale) { return std::isfinite(scale) && scale >= 0; }

std::optional<double> ScaleSeries::at(std::int64_t step) const {
  const auto [before, after] = scales_.around(step);
  if (after == nullptr) return std::nullopt;
  if (after->step == step) return after->value;
  const bool same = before != nullptr && before->value == after->value;
  return same ? std::optional(after->value) : std::nullopt;
}

Timeline::Timeline(std::string log, const TimelineSelection& selection,
                   const frames::Visitor& visit)
    : log_(std::move(log)),
      selection_(selection),
      visit_(visit),
      state_(selection.joined ? selection.joined : std::make_shared<TimelineState>()) {}

log::StepScalars& Timeline::scalars_at(std::int64_t step) { return state_->scalars[step]; }

void Timeline::loss(std::int64_t step, double value) {
  if (frames::in_steps(selection_, step)) scalars_at(step).loss = value;
}

void Timeline::learning_rate(std::int64_t step, double value) {
  if (frames::in_steps(selection_, step)) scalars_at(step).learning_rate = value;
}

void Timeline::loss_scale(std::int64_t step, double value) {
  if (!can_be_scale(value)) {
    if (frames::in_steps(selection_, step)) state_->odd_scales.insert(step);
    return;
  }
  state_->of_steps.add(step, value);  // also for a step that is not selected
  if (frames::in_steps(selection_, step)) scalars_at(step).loss_scale = value;
}

void Timeline::found_inf(std::int64_t step, bool value) {
  if (frames::in_steps(selection_, step)) scalars_at(step).found_inf = value;
}

void Timeline::gradient_norm(std::int64_t step, double value) {
  keep_once_broken(frames::kGradientNorm, step, value);
}

void Timeline::evaluation_loss(std::int64_t step, double value) {
  keep_once_broken(frames::kEvaluationLoss, step, value);
}

void Timeline::keep_once_broken(std::string_view tag, std::int64_t step, double value) {
  if (!frames::in_steps(selection_, step)) return;
  std::string name(tag);
  if (std::isfinite(value) && !state_->broken.contains(name)) return;
  state_->broken.insert(name);
  scalars_at(step).more.insert_or_assign(std::move(name), value);
}

void Timeline::nan_iterations(std::int64_t step, std::int64_t count) {
  if (count <= 0 || !frames::in_steps(selection_, step)) return;
  scalars_at(step).more.insert_or_assign(std::string(frames::kNanIterations),
                                         static_cast<double>(count));
}

void Timeline::reached(std::int64_t step) {
  if (frames::in_steps(selection_, step)) scalars_at(step);
}

void Timeline::restart(std::int64_t step) {
  state_->scalars.erase_from(step);
  state_->of_steps.restart(step);
  state_->odd_scales.erase(state_->odd_scales.lower_bound(step), state_->odd_scales.end());
  std::erase_if(state_->skips, [&](const auto& steps) { return steps.first >= step; });
  for (SkippedSteps& steps : state_->skips) {
    if (!steps.last || *steps.last < step) continue;
    const auto gone = static_cast<std::uint64_t>(*steps.last - step + 1);
    const auto left = static_cast<std::uint64_t>(step - steps.first);
    steps.last = step - 1;
    steps.count = {steps.count.low > gone ? steps.count.low - gone : 0,
                   std::min(steps.count.high, left)};
    steps.scales.clear();  // some may belong to the dropped steps
    steps.scale_to.reset();
  }
}

void Timeline::skipped(const SkippedSteps& steps) {
  const bool before = steps.last && *steps.last < selection_.first_step;
  if (!before && steps.first < selection_.end_step) state_->skips.push_back(steps);
}

bool Timeline::wants(const std::string& name, std::int64_t step) const {
  if (!frames::in_steps(selection_, step)) return false;
  if (frames::selects(selection_, name)) return true;
  // A role in words is left out as well: the glob "conv1.*" selects "gradients/conv1.weight".
  const std::size_t slash = name.find('/');
  return slash != std::string::npos && role_in_words(name.substr(0, slash)) &&
         frames::matches(*selection_.tensor_glob, name.substr(slash + 1));
}

void Timeline::names(const std::vector<std::string>& all) {
  assume_roles_ = std::none_of(all.begin(), all.end(), [](const std::string& name) {
    return log::role_in_name(name) || role_in_words(name);
  });
}

std::pair<Role, RoleSource> Timeline::role_of(const std::string& name, Role known) const {
  const auto [role, source] = readers::common::role_of(selection_, name);
  if (source == RoleSource::option) return {role, source};
  if (known != Role::unknown) return {known, RoleSource::name};
  if (source == RoleSource::name) return {role, source};
  if (const auto said = role_in_words(name)) return {*said, RoleSource::name};
  return readers::common::role_of(
      selection_, name, assume_roles_ ? std::optional(frames::Unnamed::gradients) : std::nullopt);
}

std::optional<double> Timeline::scale_of(std::int64_t step) {
  if (selection_.recorded_scale) return *selection_.recorded_scale;
  if (!selection_.scale_tag) return 1.0;
  const auto scale = state_->carried.at(step);
  if (scale && frames::usable_scale(*scale)) return scale;
  state_->without_scale.insert(step);
  ++state_->left_out;
  return std::nullopt;
}

void Timeline::add_extreme(Role role, std::int64_t step, const Extreme& found) {
  const auto index = gradient_index(role);
  if (!index || selection_.tensor_glob)
    return;  // selected tensors may lack the extreme of the role
  Extreme& e = state_->extremes[step][*index];
  e.any = true;
  e.at_least = std::max(e.at_least, found.at_least);
  e.at_most = std::max(e.at_most, found.at_most);
  e.nan |= found.nan;
  e.infinite |= found.infinite;
  e.unknown |= found.unknown;
}

void Timeline::tensor(Frame&& frame) {
  if (!wants(frame.name, frame.step)) return;
  std::tie(frame.role, frame.role_source) = role_of(frame.name, frame.role);
  state_->any_assumed |= frame.role_source == RoleSource::assumed;
  frame.scale = 1.0;
  if (gradient_index(frame.role)) {
    state_->any_gradient = true;
    const auto scale = scale_of(frame.step);
    if (!scale) return;
    frame.scale = *scale;
  }
  emit(std::move(frame), selection_.knows_scale());
}

void Timeline::emit(Frame&& frame, bool scale_told) {
  frame.loss_scaled = gradient_index(frame.role).has_value();
  if (frame.shape.empty()) frame.shape = {frame.table.total()};
  frame.run_scale = 1.0;
  if (frame.loss_scaled) {
    const double told = state_->of_steps.at(frame.step).value_or(0);
    frame.run_scale = scale_told || !frames::usable_scale(told) ? frame.scale : told;
    add_extreme(frame.role, frame.step, extreme_of(frame.table, frame.scale));
  }
  visit_.frame(std::move(frame));
}

void Timeline::peak(StepPeak peak) {
  if (!wants(peak.tensor, peak.step)) return;
  RoleSource source{};
  std::tie(peak.role, source) = role_of(peak.tensor, peak.role);
  state_->any_assumed |= source == RoleSource::assumed;
  if (gradient_index(peak.role)) {
    state_->any_gradient = true;
    const auto scale = scale_of(peak.step);
    if (!scale) return;
    peak.max_abs /= *scale;
    if (peak.at_least) *peak.at_least /= *scale;
    if (peak.min_abs_nonzero) *peak.min_abs_nonzero /= *scale;
    add_extreme(peak.role, peak.step, extreme_of(peak));
  }
  state_->peaks.push_back(std::move(peak));
}

bool Timeline::recorded_scale(const std::string& tag, std::int64_t step, double value) {
  if (state_->scalar_tags.size() < kMostTags) state_->scalar_tags.insert(tag);
  if (!selection_.scale_tag || tag != *selection_.scale_tag) return false;
  state_->carried.add(step, value);
  loss_scale(step, value);
  return true;
}

void Timeline::tell_step(log::StepScalars& scalars) const {
  const auto found = state_->extremes.find(scalars.step);
  std::optional<double>* const known[] = {&scalars.max_abs_weight_grad,
                                          &scalars.max_abs_activation_grad};
  for (std::size_t i = 0; i < kGradients.size(); ++i) {
    StepPeak peak{kGradients[i], scalars.step, 0, scalars.loss_scale};
    bool tells = scalars.loss_scale.has_value();
    if (found != state_->extremes.end() && found->second[i].any) {
      const Extreme& e = found->second[i];
      *known[i] = value_of(e);
      tells |= *known[i] || !e.unknown;
      peak.max_abs = *known[i] ? **known[i] : e.unknown ? 0.0 : e.at_most;
      if (e.at_least < peak.max_abs && std::isfinite(peak.max_abs)) peak.at_least = e.at_least;
    }
    if (tells && visit_.peak && !selection_.tensor_glob) visit_.peak(peak);
  }
}

void Timeline::tell_assumptions(Notes& notes) const {
  const std::string shown = printable(log_);
  if (state_->any_assumed) {
    notes.add(shown + ": no tensor name contains a role, so all are treated as weight_grad; use " +
              frames::role_option() + " to name roles");
  }
  if (!state_->without_scale.empty()) {
    notes.add(fmt::format(
        "{}: {} of gradients {} skipped, at {} {} from {} to {}: '{}' has no usable value there, "
        "and the values before and after differ",
        shown, state_->left_out == 1 ? "1 entry" : fmt::format("{} entries", state_->left_out),
        state_->left_out == 1 ? "is" : "are", state_->without_scale.size(),
        state_->without_scale.size() == 1 ? "step" : "steps", *state_->without_scale.begin(),
        *state_->without_scale.rbegin(), printable(*selection_.scale_tag)));
  }
  if (!state_->any_gradient || selection_.knows_scale()) return;
  std::vector<std::string> likely = by_likeness(state_->scalar_tags);
  std::erase_if(likely, [](const std::string& tag) {
    return tag.find("scale") == std::string::npos && tag.find("Scale") == std::string::npos;
  });
  notes.add(shown +
            ": does not say if gradients carry a loss scale, so they are treated as "
            "unscaled; if they do, use " +
            frames::Message(frames::Option::recorded_scale, "S") + " or TAG" +
            (likely.empty() ? "" : "; its scalars include " + list_of(likely, 3)));
}

void refuse_scale_tag(const std::string& log, const std::string& tag, const std::string& instead) {
  throw frames::InputNeedsOption(printable(log) + ": has no scalar '" + printable(tag) +
                                 "', which " + frames::Option::recorded_scale + " names; " +
                                 instead);
}

void Timeline::finish(Notes& notes) {
  if (state_->joined) return;
  if (selection_.scale_tag && state_->carried.empty()) {
    const std::vector<std::string> tags = by_likeness(state_->scalar_tags);
    refuse_scale_tag(
        log_, *selection_.scale_tag,
        tags.empty() ? "it has no scalars: give a number" : "it has " + list_of(tags, kTagsShown));
  }
  for (const auto& [step, unused] : state_->extremes) scalars_at(step);
  state_->scalars.for_each([&](std::int64_t step, log::StepScalars& scalars) {
    scalars.step = step;
    tell_step(scalars);
  });
  std::stable_sort(state_->peaks.begin(), state_->peaks.end(),
                   [](const StepPeak& a, const StepPeak& b) { return a.step < b.step; });
  for (StepPeak& peak : state_->peaks) {
    if (!peak.loss_scale) peak.loss_scale = state_->of_steps.at(peak.step);
    if (visit_.peak) visit_.peak(peak);
  }
  state_->scalars.drain([&](const log::StepScalars& scalars) {
    if (visit_.scalars) visit_.scalars(scalars);
  });
  std::stable_sort(state_->skips.begin(), state_->skips.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const SkippedSteps& steps : state_->skips) {
    if (visit_.skipped) visit_.skipped(steps);
  }
  tell_odd_scales(state_->odd_scales, log_, notes);
  tell_assumptions(notes);
}

}  // namespace halfscope::analyzers::readers::common
