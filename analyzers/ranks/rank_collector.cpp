// SPDX-License-Identifier: Apache-2.0
#include "analyzers/ranks/rank_collector.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "analyzers/frames/microbatches.hpp"

namespace halfscope::analyzers::ranks {

using frames::Frame;
using log::Role;

namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

bool is_compared(Role role) {
  return role == Role::weight_grad || role == Role::local_weight_grad ||
         role == Role::activation_grad || role == Role::activation;
}

/// Returns true if gradients of a step at this loss scale may have overflowed in FP16.
bool may_overflow(double scale) { return scale != 1 && frames::usable_scale(scale); }

bool may_overflow(const Frame& frame) {
  const bool wide = frame.computed_dtype && *frame.computed_dtype != Dtype::f16;
  return frame.loss_scaled && !wide && may_overflow(frame.run_scale);
}

double largest(const BoundedTable& table, double scale) {
  if (table.nan().low != 0) return std::numeric_limits<double>::quiet_NaN();
  if (table.inf().low != 0) return std::numeric_limits<double>::infinity();
  return table.largest() ? to_double(*table.largest()) / scale : 0;
}

std::int64_t column_of(std::int64_t step, std::int64_t stride) {
  return step / stride - (step % stride < 0 ? 1 : 0);
}

/// Joins every `factor` columns into one.
void join_columns(RankRow& row, std::int64_t factor) {
  ColumnKeys keys;
  std::vector<float> log2;
  for (std::size_t i = 0; i < row.log2.size(); ++i) {
    const std::int64_t key = column_of((*row.keys)[i], factor);
    if (!keys.empty() && keys.back() == key) {
      log2.back() = std::max(log2.back(), row.log2[i]);
    } else {
      keys.push_back(key);
      log2.push_back(row.log2[i]);
    }
  }
  row.keys = std::make_shared<const ColumnKeys>(std::move(keys));
  row.log2 = std::move(log2);
}

/// Shares the keys of the rank before if they are the same, to save memory.
void share_keys(std::vector<RankRow>& rows, std::size_t i) {
  if (i != 0 && *rows[i].keys == *rows[i - 1].keys) rows[i].keys = rows[i - 1].keys;
}

}  // namespace

RankCollector::RankCollector(const underflow::Target& target, const frames::Selection& selection)
    : target_(target),
      loss_scale_(selection.loss_scale),
      at_run_scale_(selection.at_run_scale),
      all_tensors_(!selection.tensor_glob) {}

void RankCollector::watch(const std::string& log, frames::Visitor& visit) {
  logs_.push_back({log, 0, {}, {}});
  reading_.clear();
  scaled_ = false;
  visit.manifest = [this, told = std::move(visit.manifest)](const log::Manifest& manifest) {
    if (told) told(manifest);
    scaled_ = manifest.gradients == log::ScaleState::scaled;
    logs_.back().sharded = manifest.sharded;
  };
  visit.rank_frame = [this](const Frame& frame) { add(frame); };
  visit.rank_scalars = [this](std::uint64_t rank, const std::vector<log::StepScalars>& steps) {
    for (const log::StepScalars& step : steps) add(step);
    end_rank(rank);
  };
}

void RankCollector::add(const Frame& frame) {
  if (!is_compared(frame.role)) return;
  see(frame.role, frame.step, largest(frame.table, frame.scale), may_overflow(frame));
  Reading& reading = reading_[frame.role];
  reading.names.insert(frame.name);
  const double scale = !frame.loss_scaled ? 1 : at_run_scale_ ? frame.run_scale : loss_scale_;
  const auto limits = target_.boundaries(scale, frame.scale);
  reading.values.flushed += classify(frame.table, limits).flushed_to_zero.low;
  reading.values.nonzero += frame.table.finite_nonzero().low;
}

void RankCollector::add(const log::StepScalars& s) {
  if (s.loss) see(Role::loss, s.step, *s.loss, false);
  if (!all_tensors_) return;
  const bool overflow = may_overflow(s.loss_scale.value_or(1));
  if (s.max_abs_weight_grad) see(Role::weight_grad, s.step, *s.max_abs_weight_grad, overflow);
  if (s.max_abs_activation_grad) {
    see(Role::activation_grad, s.step, *s.max_abs_activation_grad, overflow);
  }
  const double carried = frames::microbatch_scale(s, scaled_);
  const std::optional<double> part = frames::largest_part(s);
  if (part && frames::usable_scale(carried)) {
    see(Role::local_weight_grad, s.step, *part / carried, overflow);
  }
}

void RankCollector::see(Role role, std::int64_t step, double magnitude, bool overflow) {
  Reading& reading = reading_[role];
  RankValues& rank = reading.values;
  double value = std::abs(magnitude);
  if (std::isfinite(value)) {
    if (value > rank.max_abs.value_or(-1)) {
      rank.max_abs = value;
      rank.max_step = step;
    }
  } else {
    const bool nan = std::isnan(value);
    value = HUGE_VAL;
    reading.nonfinite.insert(step);
    if (overflow) {
      reading.overflowed.insert(step);
    } else if (!rank.nonfinite || step < rank.nonfinite->step) {
      rank.nonfinite = Nonfinite{step, nan};
    }
  }
  const auto log2 = static_cast<float>(std::log2(value));
  float& most = reading.steps.try_emplace(step, -kFloatInfinity).first->second;
  most = std::max(most, log2);
}

void RankCollector::Rows::add(const Reading& reading, std::uint64_t rank) {
  RankRow row;
  row.values = reading.values;
  row.values.rank = rank;
  row.values.steps = reading.steps.size();
  row.values.nonfinite_steps = reading.nonfinite.size();
  if (!reading.overflowed.empty()) row.values.overflow = *reading.overflowed.begin();
  for (const std::string& name : reading.names) row.names += std::hash<std::string>()(name) | 1;
  ColumnKeys steps;
  for (const auto& [step, log2] : reading.steps) {
    if (reading.overflowed.contains(step)) continue;  // the values' magnitude is unknown
    steps.push_back(step);
    row.log2.push_back(log2);
  }
  row.keys = std::make_shared<const ColumnKeys>(std::move(steps));
  join_columns(row, stride);
  rows.push_back(std::move(row));
  share_keys(rows, rows.size() - 1);
  while (rows.back().log2.size() > kColumns) {
    stride *= 2;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      join_columns(rows[i], 2);
      share_keys(rows, i);
    }
  }
}

void RankCollector::end_rank(std::uint64_t rank) {
  LogRows& log = logs_.back();
  ++log.ranks;
  for (const auto& [role, reading] : reading_) log.roles[role].add(reading, rank);
  reading_.clear();
}

std::vector<RankStudy> RankCollector::finish(const underflow::Target& judged) {
  std::vector<RankStudy> found;
  for (LogRows& log : logs_) {
    RankStudy study{log.log, log.ranks, {}};
    const bool local = log.roles.contains(Role::local_weight_grad);
    for (const Role role : {local ? Role::local_weight_grad : Role::weight_grad,
                            Role::activation_grad, Role::activation, Role::loss}) {
      Rows& rows = log.roles[role];
      const bool parts = role == Role::weight_grad && std::ranges::count(log.sharded, role) != 0;
      if (judged.format != target_.format) {
        for (RankRow& row : rows.rows) row.values.flushed = row.values.nonzero = 0;
      }
      if (auto compared = compare(role, std::move(rows.rows), rows.stride, parts)) {
        study.compared.push_back(std::move(*compared));
      }
    }
    if (!study.compared.empty()) found.push_back(std::move(study));
  }
  logs_.clear();
  return found;
}

}  // namespace halfscope::analyzers::ranks
