// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_items.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "analyzers/frames/quantised.hpp"
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

// Numbers of these stand in files: new ones come last.
static_assert(static_cast<int>(frames::RoleSource::none) == 4);
static_assert(static_cast<int>(frames::Gap::every_step) == 10);
static_assert(static_cast<int>(frames::Tool::deepspeed) == 11);
static_assert(static_cast<int>(frames::QuantisedStatistic::mse) == 4);

namespace {

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument(what); }

// One way.

void put(const std::optional<Magnitude>& from, const std::function<proto::Magnitude*()>& place) {
  if (!from) return;
  proto::Magnitude& to = *place();
  to.set_exponent(from->exponent);
  to.set_fraction(from->fraction);
}

void put_table(const BoundedTable& table, proto::Frame& to) {
  const std::vector<std::int64_t> words = table.exact().encode();
  to.mutable_table()->Assign(words.begin(), words.end());
  for (const Span& span : table.spans()) {
    proto::Span& one = *to.add_spans();
    put(span.first, [&] { return one.mutable_first(); });
    put(span.last, [&] { return one.mutable_last(); });
    one.set_nan(span.nan);
    one.set_count(span.count);
  }
  if (!table.is_exact()) put(table.largest(), [&] { return to.mutable_largest(); });
  to.set_nonfinite_unknown(!table.nonfinite_known());
}

void put_frame(const Frame& frame, proto::Frame& to) {
  to.set_name(frame.name);
  to.set_role(std::string(name_of(frame.role)));
  to.set_role_source(static_cast<std::uint32_t>(frame.role_source));
  to.set_loss_scaled(frame.loss_scaled);
  to.set_step(frame.step);
  if (frame.source_dtype) to.set_source_dtype(std::string(name_of(*frame.source_dtype)));
  if (frame.computed_dtype) to.set_computed_dtype(std::string(name_of(*frame.computed_dtype)));
  to.set_scale(frame.scale);
  to.set_run_scale(frame.run_scale);
  to.mutable_shape()->Assign(frame.shape.begin(), frame.shape.end());
  put_table(frame.table, to);
  if (!frame.moments) return;
  to.set_mean(frame.moments->mean);
  to.set_sum_squares(frame.moments->sum_squares);
}

void put_peak(const StepPeak& peak, proto::Peak& to) {
  to.set_role(std::string(name_of(peak.role)));
  to.set_step(peak.step);
  to.set_max_abs(peak.max_abs);
  if (peak.loss_scale) to.set_loss_scale(*peak.loss_scale);
  to.set_tensor(peak.tensor);
  if (peak.at_least) to.set_at_least(*peak.at_least);
  if (peak.min_abs_nonzero) to.set_min_abs_nonzero(*peak.min_abs_nonzero);
}

void put_scalars(const log::StepScalars& scalars, proto::Scalars& to) {
  to.set_step(scalars.step);
  if (scalars.loss) to.set_loss(*scalars.loss);
  if (scalars.learning_rate) to.set_learning_rate(*scalars.learning_rate);
  if (scalars.loss_scale) to.set_loss_scale(*scalars.loss_scale);
  if (scalars.found_inf) to.set_found_inf(*scalars.found_inf);
  if (scalars.max_abs_weight_grad) to.set_max_abs_weight_grad(*scalars.max_abs_weight_grad);
  if (scalars.max_abs_activation_grad)
    to.set_max_abs_activation_grad(*scalars.max_abs_activation_grad);
  for (const auto& [tag, value] : scalars.more) {
    to.add_tags(tag);
    to.add_values(value);
  }
}

void put_kind(const LogKind& kind, proto::Kind& to) {
  to.set_name(kind.name);
  for (const frames::Gap gap : kind.gaps) to.add_gaps(static_cast<std::uint32_t>(gap));
  to.set_skips_at_least(kind.skips_at_least);
  to.set_scale_tag(kind.scale_tag);
  to.set_ranks(kind.ranks.ranks);
  to.set_ranks_asked(kind.ranks.asked);
  to.set_ranks_certain(kind.ranks.certain);
  to.set_perhaps_skipped(kind.perhaps_skipped);
  to.set_ended_at_minimum(kind.ended_at_minimum);
  if (kind.counted_from) to.set_counted_from(*kind.counted_from);
  to.set_scaler(kind.scaler);
  for (const frames::OtherScaler& other : kind.other_scalers) {
    proto::OtherScaler& one = *to.add_other_scalers();
    one.set_scaler(other.scaler);
    one.set_messages(other.messages);
    if (other.scale_last) one.set_scale_last(*other.scale_last);
  }
  if (kind.last_step) to.set_last_step(*kind.last_step);
  if (kind.hysteresis) to.set_hysteresis(*kind.hysteresis);
  to.set_tool(static_cast<std::uint32_t>(kind.tool));
}

void put_skipped(const SkippedSteps& steps, proto::Skipped& to) {
  to.set_first(steps.first);
  if (steps.last) to.set_last(*steps.last);
  to.set_at_least(steps.count.low);
  to.set_at_most(steps.count.high);
  if (steps.scale_from) to.set_scale_from(*steps.scale_from);
  if (steps.scale_to) to.set_scale_to(*steps.scale_to);
  to.mutable_scales()->Assign(steps.scales.begin(), steps.scales.end());
}

void put_quantised(const frames::QuantisedSeries& series, proto::Quantised& to) {
  to.set_layer(std::string(series.layer));
  to.set_tensor(std::string(series.tensor));
  to.set_role(std::string(name_of(series.role)));
  to.set_recipe(std::string(name_of(series.recipe)));
  to.set_columnwise(series.columnwise);
  to.set_statistic(static_cast<std::uint32_t>(series.statistic));
  for (const frames::QuantisedValue& value : series.values) {
    to.add_steps(value.step);
    to.add_low(value.low);
    to.add_high(value.high);
  }
}

// And back.

template <typename Enum>
Enum enumerator(std::uint32_t number, Enum last) {
  if (number > static_cast<std::uint32_t>(last)) {
    reject("a number that stands for nothing: " + std::to_string(number));
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
  if (from.fraction() >= kFractionUnit || std::abs(from.exponent()) > kMost) {
    reject("a magnitude beyond all formats");
  }
  return {from.exponent(), from.fraction()};
}

double scale_in(double x) {
  if (!frames::usable_scale(x)) reject("a number that is no loss scale");
  return x;
}

std::int64_t step_in(std::int64_t step) {
  if (std::abs(static_cast<double>(step)) > static_cast<double>(common::kLargestStep)) {
    reject("step " + std::to_string(step));
  }
  return step;
}

template <typename T>
std::optional<T> given(bool has, T value) {
  return has ? std::optional(value) : std::nullopt;
}

BoundedTable table_of(const proto::Frame& from) {
  BoundedTable table(
      BinadeTable::decode({from.table().data(), static_cast<std::size_t>(from.table_size())}));
  for (const proto::Span& span : from.spans()) {
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
    reject("a largest magnitude that is none");
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
  scalars.max_abs_activation_grad = given(from.has_max_abs_activation_grad(), from.max_abs_activation_grad());
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
  kind.perhaps_skipped = from.perhaps_skipped();
  kind.ended_at_minimum = from.ended_at_minimum();
  kind.counted_from = given(from.has_counted_from(), from.counted_from());
  kind.scaler = from.scaler();
  for (const proto::OtherScaler& other : from.other_scalers()) {
    kind.other_scalers.push_back(
        {other.scaler(), other.messages(), given(other.has_scale_last(), other.scale_last())});
  }
  kind.last_step = given(from.has_last_step(), from.last_step());
  kind.hysteresis = given(from.has_hysteresis(), from.hysteresis());
  kind.tool = enumerator(from.tool(), frames::Tool::deepspeed);
  return kind;
}

SkippedSteps skipped_of(const proto::Skipped& from) {
  const bool ordered = !from.has_last() || step_in(from.last()) >= from.first();
  if (from.at_least() > from.at_most() || !ordered) reject("skipped steps that end before they begin");
  return {.first = step_in(from.first()),
          .last = given(from.has_last(), from.last()),
          .count = {from.at_least(), from.at_most()},
          .scale_from = given(from.has_scale_from(), from.scale_from()),
          .scale_to = given(from.has_scale_to(), from.scale_to()),
          .scales = {from.scales().begin(), from.scales().end()}};
}

/// A tensor's own magnitude is selected as the tensor is; those of roles where none are chosen.
bool selects(const Selection& s, const StepPeak& peak) {
  if (!frames::in_steps(s, peak.step)) return false;
  return peak.tensor.empty() ? !s.tensor_glob : frames::selects(s, peak.tensor);
}

bool selects(const Selection& s, const SkippedSteps& steps) {
  return steps.first < s.end_step && !(steps.last && *steps.last < s.first_step);
}

}  // namespace

frames::Visitor items_of(const std::function<void(const proto::Item&)>& take) {
  frames::Visitor visit;
  const auto item = [take](const auto& fill) {
    proto::Item one;
    fill(one);
    take(one);
  };
  visit.frame = [item](Frame&& frame) {
    item([&](proto::Item& to) { put_frame(frame, *to.mutable_frame()); });
  };
  visit.peak = [item](const StepPeak& peak) {
    item([&](proto::Item& to) { put_peak(peak, *to.mutable_peak()); });
  };
  visit.manifest = [item](const log::Manifest&) {  // it stands at the part's beginning
    item([](proto::Item& to) { to.set_manifest(true); });
  };
  visit.scalars = [item](const log::StepScalars& scalars) {
    item([&](proto::Item& to) { put_scalars(scalars, *to.mutable_scalars()); });
  };
  visit.kind = [item](const LogKind& kind) {
    item([&](proto::Item& to) { put_kind(kind, *to.mutable_kind()); });
  };
  visit.skipped = [item](const SkippedSteps& steps) {
    item([&](proto::Item& to) { put_skipped(steps, *to.mutable_skipped()); });
  };
  visit.run = [item](const std::string& name) {
    item([&](proto::Item& to) { to.set_run(name); });
  };
  visit.quantised = [item, steps = std::vector<std::int64_t>()](
                        const frames::QuantisedSeries& series) mutable {
    if (!std::ranges::equal(steps, series.log_steps)) {
      steps.assign(series.log_steps.begin(), series.log_steps.end());
      item([&](proto::Item& to) {
        to.mutable_log_steps()->mutable_step()->Assign(steps.begin(), steps.end());
      });
    }
    item([&](proto::Item& to) { put_quantised(series, *to.mutable_quantised()); });
  };
  return visit;
}

void ItemTeller::tell_log_steps(const proto::Item& item) {
  const auto& steps = item.log_steps().step();
  log_steps_all_.assign(steps.begin(), steps.end());
  if (!std::ranges::is_sorted(log_steps_all_)) reject("steps that do not ascend");
  log_steps_ = log_steps_all_;
  std::erase_if(log_steps_, [&](auto step) { return !frames::in_steps(selection_, step); });
}

void ItemTeller::tell_quantised(const proto::Item& item) {
  const proto::Quantised& from = item.quantised();
  if (from.low_size() != from.steps_size() || from.high_size() != from.steps_size()) {
    reject("statistics without values");
  }
  std::vector<frames::QuantisedValue> values;
  for (int i = 0; i < from.steps_size(); ++i) {
    const bool ordered = i == 0 || from.steps(i - 1) < from.steps(i);
    const bool in_log = std::ranges::binary_search(log_steps_all_, from.steps(i));
    const bool number = 0 <= from.low(i) && from.low(i) <= from.high(i);
    if (!ordered || !in_log || !number || !std::isfinite(from.high(i))) {
      reject("a statistic that none is");
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
    switch (item.item_case()) {
      case proto::Item::kFrame: {
        const proto::Frame& from = item.frame();
        if (!frames::in_steps(selection_, from.step()) ||
            !frames::selects(selection_, from.name())) {
          return;
        }
        return visit_.frame(frame_of(from));
      }
      case proto::Item::kPeak: {
        const StepPeak peak = peak_of(item.peak());
        if (visit_.peak && selects(selection_, peak)) visit_.peak(peak);
        return;
      }
      case proto::Item::kScalars: {
        const bool wanted = frames::in_steps(selection_, item.scalars().step());
        if (visit_.scalars && wanted) visit_.scalars(scalars_of(item.scalars()));
        return;
      }
      case proto::Item::kKind:
        if (visit_.kind) visit_.kind(kind_of(item.kind()));
        return;
      case proto::Item::kSkipped: {
        const SkippedSteps steps = skipped_of(item.skipped());
        if (visit_.skipped && selects(selection_, steps)) visit_.skipped(steps);
        return;
      }
      case proto::Item::kLogSteps:
        return tell_log_steps(item);
      case proto::Item::kQuantised:
        if (visit_.quantised) tell_quantised(item);
        return;
      case proto::Item::kManifest:
        if (visit_.manifest && manifest_) visit_.manifest(*manifest_);
        return;
      case proto::Item::kRun:
        if (visit_.run) visit_.run(item.run());
        return;
      default:
        return;  // of a later version, which reads the same without it
    }
  } catch (const std::invalid_argument& error) {
    throw log::BadInput(where_ + ": " + error.what() + "; count it again");
  }
}

}  // namespace halfscope::analyzers::readers::record
