// SPDX-License-Identifier: Apache-2.0
#include "analyzers/count/part_rows.hpp"

#include <cmath>

namespace halfscope::analyzers::count {
namespace {

void add_binades(const BoundedTable& table, std::size_t tensor, std::vector<BinadeRow>& rows) {
  for (const BinadeTable::Row& row : table.exact().rows()) {
    rows.push_back({.exponent = row.exponent,
                    .low = to_double({row.exponent, 0}),
                    .high = to_double({row.exponent, kFractionUnit - 1}),
                    .count = row.count(),
                    .negative = static_cast<std::int64_t>(row.negative),
                    .tensor = tensor});
  }
  for (const Span& span : table.spans()) {
    rows.push_back({.low = span.first ? to_double(*span.first) : 0,
                    .high = span.last ? to_double(*span.last) : HUGE_VAL,
                    .count = span.count,
                    .tensor = tensor});
  }
}

void add_scalars(const log::StepScalars& scalars, std::vector<ScalarRow>& rows) {
  const auto add = [&](std::string name, const auto& value) {
    if (value) rows.push_back({std::move(name), scalars.step, static_cast<double>(*value)});
  };
  add("loss", scalars.loss);
  add("learning_rate", scalars.learning_rate);
  add("loss_scale", scalars.loss_scale);
  add("found_inf", scalars.found_inf);
  add("max_abs/weight_grad", scalars.max_abs_weight_grad);
  add("max_abs/activation_grad", scalars.max_abs_activation_grad);
  for (const auto& [tag, value] : scalars.more) rows.push_back({tag, scalars.step, value});
}

}  // namespace

PartRows rows_of(const frames::Part& part, frames::Notes& notes, const frames::Progress& progress) {
  PartRows rows;
  frames::Visitor visit;
  visit.frame = [&](frames::Frame&& frame) {
    add_binades(frame.table, rows.tensors.size(), rows.binades);
    rows.tensors.push_back({.name = std::move(frame.name),
                            .role = name_of(frame.role),
                            .dtype = frame.source_dtype ? name_of(*frame.source_dtype) : "",
                            .step = frame.step,
                            .scale = frame.scale,
                            .total = frame.table.total(),
                            .zero = frame.table.zero(),
                            .nan = frame.table.nan(),
                            .inf = frame.table.inf()});
  };
  visit.scalars = [&](const log::StepScalars& scalars) { add_scalars(scalars, rows.scalars); };
  part.read(visit, notes, progress);
  return rows;
}

}  // namespace halfscope::analyzers::count
