// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/record_items.hpp"

#include <algorithm>
#include <utility>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/readers/record/record.pb.h"

namespace halfscope::analyzers::readers::record {

namespace proto = halfscope::record;
using frames::Frame;
using frames::LogKind;
using frames::SkippedSteps;
using frames::StepPeak;

// Records store these enumerators as numbers, so new ones must be added at the end.
static_assert(static_cast<int>(frames::RoleSource::none) == 4);
static_assert(static_cast<int>(frames::Gap::every_step) == 10);
static_assert(static_cast<int>(frames::Tool::deepspeed) == 11);
static_assert(static_cast<int>(frames::QuantisedStatistic::mse) == 4);

namespace {

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
  for (const std::string& remark : kind.remarks) to.add_remarks(remark);
  if (kind.nonfinite_line) {
    to.set_nonfinite_step(kind.nonfinite_line->step);
    to.set_nonfinite_line(kind.nonfinite_line->line);
  }
  if (!kind.bad_loss_part) return;
  proto::BadLossPart& part = *to.mutable_bad_loss_part();
  part.set_step(kind.bad_loss_part->step);
  part.set_name(kind.bad_loss_part->name);
  part.set_bad(kind.bad_loss_part->bad);
  part.set_of(kind.bad_loss_part->of);
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
  visit.manifest = [item](const log::Manifest&) {  // Begin holds the manifest itself
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
  visit.run = [item](const std::string& name) { item([&](proto::Item& to) { to.set_run(name); }); };
  visit.quantised =
      [item, steps = std::vector<std::int64_t>()](const frames::QuantisedSeries& series) mutable {
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

}  // namespace halfscope::analyzers::readers::record
