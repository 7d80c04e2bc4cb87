// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/scalar_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::readers::lines {

using log::printable;

std::optional<std::int64_t> whole_step(double value) {
  if (!(value >= 0 && value <= static_cast<double>(common::kLargestStep))) return std::nullopt;
  const auto step = static_cast<std::int64_t>(value);
  return static_cast<double>(step) == value ? std::optional(step) : std::nullopt;
}

std::optional<std::int64_t> step_in(std::string_view text) {
  const auto value = common::number_in(text);
  return value ? whole_step(*value) : std::nullopt;
}

namespace {

/// Passes a scalar's value on to the timeline.
void report_scalar(common::Timeline& timeline, Meaning meaning, std::int64_t step, double value) {
  switch (meaning) {
    case Meaning::loss: return timeline.loss(step, value);
    case Meaning::learning_rate: return timeline.learning_rate(step, value);
    case Meaning::loss_scale: return timeline.loss_scale(step, value);
    case Meaning::log2_loss_scale: return timeline.loss_scale(step, std::exp2(value));
    case Meaning::overflow: return timeline.found_inf(step, value != 0);
    case Meaning::gradient_norm: return timeline.gradient_norm(step, value);
    case Meaning::evaluation_loss: return timeline.evaluation_loss(step, value);
    case Meaning::nan_iterations: return timeline.nan_iterations(step, std::llround(value));
    default: return;  // counters: see report_counter()
  }
}

/// Passes a counter of skipped steps on to the timeline: each increase is the number of skipped
/// steps since the value before. The first value counts all steps so far. The first value of a
/// counter of intervals is not used, since the length of that interval is unknown.
void report_counter(common::Timeline& timeline, Series& counter) {
  const bool of_interval = counter.named.meaning == Meaning::skipped_interval;
  auto before = of_interval ? std::optional<std::int64_t>() : 0;
  double counted = 0;
  counter.values.for_each([&](std::int64_t step, double value) {
    const auto since = std::exchange(before, step);
    const double more = value - (of_interval ? 0 : std::exchange(counted, value));
    if (!since || !(more >= 0 && more <= static_cast<double>(step - *since))) return;
    if (step - *since == 1) return timeline.found_inf(step, more == 1);
    if (more < 1) return;
    timeline.skipped({*since + 1, step, Interval(static_cast<std::uint64_t>(more)), {}, {}});
  });
}

}  // namespace

ScalarLog::ScalarLog(const log::OpenPath& log, const std::vector<std::filesystem::path>& files,
                     const common::TimelineSelection& selection, const frames::Visitor& visit,
                     frames::Notes& notes, const frames::Progress& progress, int passes)
    : selection_(selection),
      visit_(visit),
      notes_(notes),
      shown_(printable((files.size() == 1 ? files.front() : log.path).string())),
      files_(log, files, notes, progress, passes),
      timeline_(log.path.string(), selection, visit) {}

Series& ScalarLog::series(const std::string& tag) {
  const auto known = by_tag_.find(tag);
  return known == by_tag_.end() ? series(tag, meaning_of_tag(tag), "") : *known->second;
}

Series& ScalarLog::series(const std::string& tag, Named named, const std::string& alias) {
  const auto [known, is_new] = by_tag_.try_emplace(tag);
  if (is_new) {
    const auto& wanted = selection_.scale_tag;
    const bool kept = named.known() || wanted == tag || wanted == alias;
    known->second = &series_.emplace_back(Series{tag, alias, named, {}, kept});
  }
  return *known->second;
}

std::map<Meaning, Series*> ScalarLog::used() {
  std::map<Meaning, Series*> used;
  for (Series& series : series_) {
    if (!series.named.known() || series.values.empty()) continue;
    Series*& best = used[series.named.meaning];
    if (best == nullptr || series.named.rank < best->named.rank) best = &series;
  }
  return used;
}

void ScalarLog::report_scalars() {
  const auto used_ones = used();
  for (const auto& [meaning, series] : used_ones) {
    if (meaning == Meaning::skipped || meaning == Meaning::skipped_interval) {
      report_counter(timeline_, *series);
    }
    series->values.for_each([&, of = meaning](std::int64_t step, double value) {
      report_scalar(timeline_, of, step, value);
    });
  }
  const Series* unused = nullptr;
  for (Series& series : series_) {
    for (const std::string& name : {series.tag, series.alias}) {
      if (name == selection_.scale_tag) {
        series.values.for_each(
            [&](std::int64_t step, double value) { timeline_.recorded_scale(name, step, value); });
      } else if (!name.empty()) {
        timeline_.recorded_scale(name, 0, 0);  // for a message that lists the tags
      }
    }
    const auto used_one = used_ones.find(series.named.meaning);
    const bool is_used = used_one == used_ones.end() || used_one->second == &series;
    if (unused == nullptr && !is_used && !series.values.empty()) unused = &series;
  }
  if (unused == nullptr) return;
  const Meaning meaning = unused->named.meaning;
  notes_.add(fmt::format("{}: the {} is read from '{}'; '{}' is not used", shown_, name_of(meaning),
                         printable(used_ones.at(meaning)->tag), printable(unused->tag)));
}

void ScalarLog::finish(frames::LogKind kind) {
  for (const auto& [meaning, series] : used()) {
    if (meaning == Meaning::loss_scale) kind.scale_tag = series->tag;
    if (meaning == Meaning::skipped) kind.counted_from = 1;
  }
  const bool scalars_alone = std::ranges::count(kind.gaps, frames::Gap::tensors) > 0;
  if (scalars_alone && !series_.empty() && std::ranges::none_of(series_, &Series::kept)) {
    notes_.add(
        fmt::format("{}: no name means loss, learning rate or loss scale, the first is '{}'; use ",
                    shown_, printable(series_.front().tag)) +
        frames::Message(frames::Option::recorded_scale, "NAME") + " to name the loss scale");
  }
  if (visit_.kind) visit_.kind(kind);
  timeline_.finish(notes_);
}

}  // namespace halfscope::analyzers::readers::lines
