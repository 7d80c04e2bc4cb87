// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_items.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/frames/value_total.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::record {

namespace proto = halfscope::record;
using frames::Frame;
using frames::LogKind;
using frames::Selection;
using frames::SkippedSteps;
using frames::StepPeak;

namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

template <typename Enum>
Enum enumerator(std::uint32_t number, Enum last) {
  if (number > static_cast<std::uint32_t>(last)) {
    reject("unknown value " + std::to_string(number));
  }
  return static_cast<Enum>(number);
}

log::Role role_named(const std::string& name) {
  if (const auto role = log::find_role(name)) return *role;
  if (name != name_of(log::Role::unknown)) reject("unknown role '" + log::printable(name) + "'");
  return log::Role::unknown;
}

std::optional<Dtype> dtype_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto dtype = find_dtype(name);
  if (!dtype) reject("unknown dtype '" + log::printable(name) + "'");
  return dtype;
}

frames::Recipe recipe_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(frames::Recipe::nvfp4); ++i) {
    const auto recipe = static_cast<frames::Recipe>(i);
    if (name_of(recipe) == name) return recipe;
  }
  reject("unknown recipe '" + log::printable(name) + "'");
}

Magnitude magnitude(const proto::Magnitude& from) {
  constexpr int kMost = 1 << 14;
  if (from.fraction() >= kFractionUnit || from.exponent() < -kMost || from.exponent() > kMost) {
    reject("a magnitude beyond all formats");
  }
  return {from.exponent(), from.fraction()};
}

double scale_in(double x) {
  if (!frames::usable_scale(x)) reject("not a loss scale: " + std::to_string(x));
  return x;
}

/// Returns a number of steps or of messages. Throws if it is larger than any log can have.
std::uint64_t count_in(std::uint64_t count) {
  if (count > static_cast<std::uint64_t>(common::kLargestStep)) {
    reject("a count of " + std::to_string(count));
  }
  return count;
}

template <typename T>
std::optional<T> given(bool has, T value) {
  return has ? std::optional(value) : std::nullopt;
}

BoundedTable table_of(const proto::Frame& from) {
  BoundedTable table(
      BinadeTable::decode({from.table().data(), static_cast<std::size_t>(from.table_size())}));
  std::uint64_t between = 0;
  for (const proto::Span& span : from.spans()) {
    const bool wraps = __builtin_add_overflow(between, span.count(), &between);
    if (wraps || between > frames::kMostValues) reject("counts that add up to more than 2^62");
    Span one{{}, {}, span.nan(), span.count()};
    if (span.has_first()) one.first = magnitude(span.first());
    if (span.has_last()) one.last = magnitude(span.last());
    table.add(one);
  }
  if (from.has_largest()) table.limit_largest(magnitude(from.largest()));
  if (from.nonfinite_unknown()) table.set_nonfinite_unknown();
  return table;
}

Frame frame_of(const proto::Frame& from) {
  Frame frame;
  frame.name = from.name();
  frame.role = role_named(from.role());
  frame.role_source = enumerator(from.role_source(), frames::RoleSource::none);
  frame.loss_scaled = from.loss_scaled();
  frame.step = step_in(from.step());
  frame.source_dtype = dtype_named(from.source_dtype());
  frame.computed_dtype = dtype_named(from.computed_dtype());
  frame.scale = scale_in(from.scale());
  frame.run_scale = scale_in(from.run_scale());
  frame.shape.assign(from.shape().begin(), from.shape().end());
  frame.table = table_of(from);
  if (from.has_mean()) frame.moments = Moments{from.mean(), from.sum_squares()};
  return frame;
}

StepPeak peak_of(const proto::Peak& from) {
  if (from.max_abs() < 0 || from.at_least() > from.max_abs() || from.min_abs_nonzero() < 0) {
    reject("an invalid largest magnitude");
  }
  return {.role = role_named(from.role()),
          .step = step_in(from.step()),
          .max_abs = from.max_abs(),
          .loss_scale = given(from.has_loss_scale(), from.loss_scale()),
          .tensor = from.tensor(),
          .at_least = given(from.has_at_least(), from.at_least()),
          .min_abs_nonzero = given(from.has_min_abs_nonzero(), from.min_abs_nonzero())};
}

log::StepScalars scalars_of(const proto::Scalars& from) {
  log::StepScalars scalars;
  scalars.step = step_in(from.step());
  scalars.loss = given(from.has_loss(), from.loss());
  scalars.learning_rate = given(from.has_learning_rate(), from.learning_rate());
  scalars.loss_scale = given(from.has_loss_scale(), from.loss_scale());
  scalars.found_inf = given(from.has_found_inf(), from.found_inf());
  scalars.max_abs_weight_grad = given(from.has_max_abs_weight_grad(), from.max_abs_weight_grad());
  scalars.max_abs_activation_grad =
      given(from.has_max_abs_activation_grad(), from.max_abs_activation_grad());
  if (from.tags_size() != from.values_size()) reject("scalars without values");
  for (int i = 0; i < from.tags_size(); ++i) {
    scalars.more.insert_or_assign(from.tags(i), from.values(i));
  }
  return scalars;
}

LogKind kind_of(const proto::Kind& from) {
  LogKind kind;
  kind.name = log::printable(from.name());
  if (kind.name.empty()) reject("a kind of log without a name");
  for (const std::uint32_t gap : from.gaps()) {
    kind.gaps.push_back(enumerator(gap, frames::Gap::every_step));
  }
  std::ranges::sort(kind.gaps);
  kind.skips_at_least = from.skips_at_least();
  kind.scale_tag = from.scale_tag();
  kind.ranks = {from.ranks(), from.ranks_asked(), from.ranks_certain()};
  kind.perhaps_skipped = count_in(from.perhaps_skipped());
  kind.ended_at_minimum = from.ended_at_minimum();
  kind.counted_from = given(from.has_counted_from(), step_in(from.counted_from()));
  kind.scaler = from.scaler();
  for (const proto::OtherScaler& other : from.other_scalers()) {
    kind.other_scalers.push_back({other.scaler(), count_in(other.messages()),
                                  given(other.has_scale_last(), other.scale_last())});
  }
  kind.last_step = given(from.has_last_step(), step_in(from.last_step()));
  kind.hysteresis = given(from.has_hysteresis(), step_in(from.hysteresis()));
  kind.tool = enumerator(from.tool(), frames::Tool::deepspeed);
  for (const std::string& remark : from.remarks()) {
    kind.remarks.push_back(log::printable(remark));
  }
  if (from.has_nonfinite_step()) {
    kind.nonfinite_line =
        frames::PrintedLine{step_in(from.nonfinite_step()), from.nonfinite_line()};
  }
  if (from.has_bad_loss_part()) {
    const proto::BadLossPart& part = from.bad_loss_part();
    kind.bad_loss_part = frames::BadLossPart{step_in(part.step()), log::printable(part.name()),
                                             count_in(part.bad()), count_in(part.of())};
  }
  return kind;
}

SkippedSteps skipped_of(const proto::Skipped& from) {
  const bool ordered = !from.has_last() || step_in(from.last()) >= from.first();
  if (from.at_least() > from.at_most() || !ordered)
    reject("skipped steps that end before they begin");
  return {.first = step_in(from.first()),
          .last = given(from.has_last(), from.last()),
          .count = {from.at_least(), count_in(from.at_most())},
          .scale_from = given(from.has_scale_from(), from.scale_from()),
          .scale_to = given(from.has_scale_to(), from.scale_to()),
          .scales = {from.scales().begin(), from.scales().end()}};
}

/// Returns true if a peak is selected. A role's peak is, unless tensors are selected by name.
bool selects(const Selection& s, const StepPeak& peak) {
  if (!frames::in_steps(s, peak.step)) return false;
  return peak.tensor.empty() ? !s.tensor_glob : frames::selects(s, peak.tensor);
}

bool selects(const Selection& s, const SkippedSteps& steps) {
  return steps.first < s.end_step && !(steps.last && *steps.last < s.first_step);
}

}  // namespace

std::int64_t step_in(std::int64_t step) {
  if (std::abs(static_cast<double>(step)) > static_cast<double>(common::kLargestStep)) {
    reject("step " + std::to_string(step));
  }
  return step;
}

void ItemTeller::tell_log_steps(const proto::LogSteps& from) {
  const auto& steps = from.step();
  log_steps_all_.assign(steps.begin(), steps.end());
  for (const std::int64_t step : log_steps_all_) step_in(step);
  if (!std::ranges::is_sorted(log_steps_all_)) reject("steps that do not ascend");
  log_steps_ = log_steps_all_;
  std::erase_if(log_steps_, [&](auto step) { return !frames::in_steps(selection_, step); });
}

void ItemTeller::tell_quantised(const proto::Quantised& from) {
  if (!visit_.quantised) return;
  if (from.low_size() != from.steps_size() || from.high_size() != from.steps_size()) {
    reject("statistics without values");
  }
  std::vector<frames::QuantisedValue> values;
  for (int i = 0; i < from.steps_size(); ++i) {
    const bool ordered = i == 0 || from.steps(i - 1) < from.steps(i);
    const bool in_log = std::ranges::binary_search(log_steps_all_, from.steps(i));
    const bool number = 0 <= from.low(i) && from.low(i) <= from.high(i);
    if (!ordered || !in_log || !number || !std::isfinite(from.high(i))) {
      reject("an invalid statistic");
    }
    if (!frames::in_steps(selection_, from.steps(i))) continue;
    values.push_back({from.steps(i), from.low(i), from.high(i)});
  }
  if (values.empty()) return;
  if (from.layer().empty()) reject("a statistic of no layer");
  if (!frames::selects(selection_, frames::tensor_of(from.layer(), from.tensor()))) return;
  visit_.quantised({.layer = from.layer(),
                    .tensor = from.tensor(),
                    .role = role_named(from.role()),
                    .recipe = recipe_named(from.recipe()),
                    .columnwise = from.columnwise(),
                    .statistic = enumerator(from.statistic(), frames::QuantisedStatistic::mse),
                    .values = values,
                    .log_steps = log_steps_});
}

void ItemTeller::tell(const proto::Item& item) {
  try {
    tell_any(item);
  } catch (const std::invalid_argument& error) {
    throw log::BadInput(where_ + ": " + error.what() + "; count it again");
  }
}

void ItemTeller::tell_frame(const proto::Frame& from) {
  const bool wanted =
      frames::in_steps(selection_, from.step()) && frames::selects(selection_, from.name());
  if (wanted) visit_.frame(frame_of(from));
}

void ItemTeller::tell_peak(const proto::Peak& from) {
  const StepPeak peak = peak_of(from);
  if (visit_.peak && selects(selection_, peak)) visit_.peak(peak);
}

void ItemTeller::tell_scalars(const proto::Scalars& from) {
  const bool wanted = frames::in_steps(selection_, from.step());
  if (visit_.scalars && wanted) visit_.scalars(scalars_of(from));
}

void ItemTeller::tell_skipped(const proto::Skipped& from) {
  const SkippedSteps steps = skipped_of(from);
  if (visit_.skipped && selects(selection_, steps)) visit_.skipped(steps);
}

void ItemTeller::tell_any(const proto::Item& item) {
  using Item = proto::Item;
  switch (item.item_case()) {
    case Item::kFrame: return tell_frame(item.frame());
    case Item::kPeak: return tell_peak(item.peak());
    case Item::kScalars: return tell_scalars(item.scalars());
    case Item::kSkipped: return tell_skipped(item.skipped());
    case Item::kLogSteps: return tell_log_steps(item.log_steps());
    case Item::kQuantised: return tell_quantised(item.quantised());
    case Item::kKind:
      if (visit_.kind) visit_.kind(kind_of(item.kind()));
      return;
    case Item::kManifest:
      if (visit_.manifest && manifest_) visit_.manifest(*manifest_);
      return;
    case Item::kRun:
      if (visit_.run) visit_.run(item.run());
      return;
    default: return;  // an item of whole tensors, or of a later version that does not need it
  }
}

}  // namespace halfscope::analyzers::readers::record
