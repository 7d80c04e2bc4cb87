// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/scalar_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"
#include "halfscope/log/read_file.hpp"

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

/// Tells the timeline the value of a scalar by what it means; nothing of a counter.
void tell_scalar(common::Timeline& timeline, Meaning meaning, std::int64_t step, double value) {
  switch (meaning) {
    case Meaning::loss: return timeline.loss(step, value);
    case Meaning::learning_rate: return timeline.learning_rate(step, value);
    case Meaning::loss_scale: return timeline.loss_scale(step, value);
    case Meaning::log2_loss_scale: return timeline.loss_scale(step, std::exp2(value));
    case Meaning::overflow: return timeline.found_inf(step, value != 0);
    case Meaning::gradient_norm: return timeline.gradient_norm(step, value);
    case Meaning::evaluation_loss: return timeline.evaluation_loss(step, value);
    case Meaning::nan_iterations: return timeline.nan_iterations(step, std::llround(value));
    default: return;
  }
}

bool counts_skipped(Meaning meaning) {
  return meaning == Meaning::skipped || meaning == Meaning::skipped_interval;
}

/// A counter of skipped steps: what it has more than before is of the steps since then. The first
/// value is of all steps so far; one of an interval is left out, since its length is unknown.
void tell_counter(common::Timeline& timeline, Series& counter) {
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
    : log_(log),
      selection_(selection),
      visit_(visit),
      notes_(notes),
      progress_(progress),
      shown_(printable((files.size() == 1 ? files.front() : log.path).string())),
      bytes_(common::bytes_of(log, files) * static_cast<std::uint64_t>(passes)),
      timeline_(log.path.string(), selection, visit) {}

void ScalarLog::read_lines(const std::filesystem::path& file, const Take& take) {
  common::TextLines lines(log_.at(file), progress_, bytes_before_, bytes_);
  common::BadLines bad;
  while (const auto line = lines.next()) {
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string why = take(*line, lines.number());
    if (!why.empty()) bad.add(lines.number(), why);
  }
  bad.tell(printable(lines.name()), notes_);
  bytes_before_ += lines.bytes();
}

void ScalarLog::read_whole(const std::filesystem::path& file,
                           const std::function<std::string(std::string_view text)>& take) {
  const std::string text = log::read_text(log_.at(file));
  const std::string why = take(text);
  if (!why.empty()) notes_.add(printable(file.string()) + ": " + why + "; the rest is not read");
  bytes_before_ += text.size();
  if (progress_) progress_(bytes_before_, bytes_);
}

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

void ScalarLog::tell_scalars() {
  const auto tell = [](Series& series, const auto& to) { series.values.for_each(to); };
  const auto used_ones = used();
  for (const auto& [meaning, series] : used_ones) {
    if (counts_skipped(meaning)) tell_counter(timeline_, *series);
    tell(*series, [&, of = meaning](std::int64_t step, double value) {
      tell_scalar(timeline_, of, step, value);
    });
  }
  for (Series& series : series_) {
    for (const std::string& name : {series.tag, series.alias}) {
      if (name == selection_.scale_tag) {
        tell(series, [&](std::int64_t step, double v) { timeline_.recorded_scale(name, step, v); });
      } else if (!name.empty()) {
        timeline_.recorded_scale(name, 0, 0);  // for a message that lists the tags
      }
    }
  }
  const auto left_out = std::ranges::find_if(series_, [&](const Series& series) {
    const auto one = used_ones.find(series.named.meaning);
    return one != used_ones.end() && one->second != &series && !series.values.empty();
  });
  if (left_out == series_.end()) return;
  notes_.add(fmt::format(
      "{}: the {} is read from '{}'; '{}' is not used", shown_, name_of(left_out->named.meaning),
      printable(used_ones.at(left_out->named.meaning)->tag), printable(left_out->tag)));
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
