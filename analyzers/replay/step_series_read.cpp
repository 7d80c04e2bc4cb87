// SPDX-License-Identifier: Apache-2.0
// The series of logs that are read one after another, notes about missing data, and plain series.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>

#include "analyzers/replay/step_series_parts.hpp"

namespace halfscope::analyzers::replay {

using frames::Frame;
using frames::InputNeedsOption;
using frames::Notes;
using frames::Option;
using log::printable;
using underflow::LogFindings;

namespace {

/// Returns true if the log is one rank's folder of a run with several ranks. If several ranks are
/// read, the reader reports those that are missing.
bool lacks_ranks(const StepSeries& series) {
  if (!series.manifest || series.manifest->world_size <= 1) return false;
  if (log::rank_folders(series.log).size() > 1) return false;
  return std::ranges::any_of(series.seen, &AttemptMagnitudes::partial);
}

/// Returns a number of steps as text: "2 steps", "1 to 3 steps".
std::string steps_text(const Interval& count) {
  const std::string steps = count.high == 1 ? "step" : "steps";
  return count.exact() ? fmt::format("{} {}", count.low, steps)
                       : fmt::format("{} to {} {}", count.low, count.high, steps);
}

/// Returns notes on facts that no replay of the log can know.
Notes notes_of(const StepSeries& series, const LogFindings& log) {
  Notes notes;
  const std::string shown = printable(series.log);
  if (log.clipped) {
    notes.add(shown +
              ": weight gradients were clipped before they were recorded, so they were as "
              "large or larger; a step may overflow although no recorded magnitude does");
  }
  if (lacks_ranks(series)) {
    notes.add(
        fmt::format("{}: is only rank {} of {}: the gradients of the other ranks are unknown, and "
                    "steps may overflow there; give the folder that holds all ranks",
                    shown, series.manifest->rank, series.manifest->world_size));
  }
  Interval skipped;
  for (const frames::SkippedSteps& steps : log.skips) skipped += steps.count;
  if (skipped.high != 0) {
    notes.add(
        fmt::format("{}: the run skipped {}, but the log does not say which ones; the replay does "
                    "not include what made it skip them",
                    shown, steps_text(skipped)));
  }
  return notes;
}

}  // namespace

void weights_at_least(StepSeries& series) {
  const auto at_least = [](AttemptMagnitudes& seen) { seen.partial = seen.weights_partial = true; };
  std::for_each(series.seen.begin(), series.seen.end(), at_least);
  for (auto& [index, attempts] : series.retried) {
    std::for_each(attempts.begin(), attempts.end(), at_least);
  }
}

void SeriesCollector::start(const std::string& log) {
  finish_log();
  log_ = log;
  builder_ = std::make_shared<SeriesBuilder>(log, target_, recorded_scale_);
}

frames::Visitor SeriesCollector::begin(const std::string& log) {
  start(log);
  frames::Visitor visit;
  visit.frame = [this](Frame&& frame) { builder_->add(frame); };
  visit.peak = [this](const frames::StepPeak& peak) { builder_->add(peak); };
  visit.kind = [this](const frames::LogKind&) { builder_->of_other_tool = true; };
  visit.manifest = [this](const log::Manifest& manifest) { builder_->manifest = manifest; };
  visit.scalars = [this](const log::StepScalars& step) { builder_->add(step); };
  visit.other_rank = [this](const auto& scalars) { builder_->add_rank(scalars); };
  visit.run = [this](const std::string& name) { start(name); };
  return visit;
}

void SeriesCollector::finish_log() {
  const auto builder = std::exchange(builder_, nullptr);
  if (!builder) return;
  try {
    if (auto series = builder->finish()) found_.series.push_back(std::move(*series));
  } catch (const log::BadInput& e) {
    found_.none.emplace_back(log_, frames::message_of(e));
  }
}

LogSeries SeriesCollector::finish(const std::vector<LogFindings>& logs) {
  finish_log();
  for (StepSeries& series : found_.series) {
    const auto log = std::ranges::find(logs, series.log, &LogFindings::name);
    if (log == logs.end()) continue;
    if (log->clipped) weights_at_least(series);
    series.notes = notes_of(series, *log);
  }
  return std::exchange(found_, {});
}

namespace {

using log::BadInput;

constexpr std::string_view kWanted =
    "expected one largest unscaled gradient magnitude per line: a number that is not negative, nan "
    "or inf";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Returns the magnitude in a text. Throws log::BadInput with the line if it has none.
double magnitude_in(std::string_view text, const std::string& where) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = end == digits.data() + digits.size() && !digits.starts_with('+');
  if (whole && error == std::errc::result_out_of_range) {
    throw BadInput(where + ": '" + printable(std::string(text)) +
                   "' is beyond binary64; write inf, or 0");
  }
  if (error != std::errc() || !whole) {
    throw BadInput(where + ": found '" + printable(std::string(text)) + "', " +
                   std::string(kWanted));
  }
  if (value < 0) {
    throw BadInput(where + ": " + printable(std::string(text)) + " is negative, " +
                   std::string(kWanted));
  }
  return std::abs(value);
}

}  // namespace

StepSeries read_magnitudes(const std::filesystem::path& file) {
  const std::string shown = printable(file.string());
  if (std::filesystem::is_directory(file)) {
    throw InputNeedsOption(shown + ": is a folder; give a run log as LOG, not with " +
                           Option::amax);
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw BadInput(shown + ": cannot be read; " + std::string(kWanted));
  StepSeries series;
  series.log = file.string();
  series.from_magnitudes = true;
  std::array<char, 256> line{};  // no valid number is longer
  std::uint64_t number = 0, blank = 0;
  while (in.getline(line.data(), line.size()) || in.gcount() > 0) {
    const std::string where = fmt::format("{}: line {}", shown, ++number);
    if (in.fail()) {
      throw BadInput(where + ": is longer than a number can be, " + std::string(kWanted));
    }
    const std::size_t end = in.eof() ? 0 : 1;  // gcount() includes the line break
    const auto text = trimmed({line.data(), static_cast<std::size_t>(in.gcount()) - end});
    if (text.starts_with('#')) continue;
    if (text.empty()) {
      if (blank == 0) blank = number;
      continue;
    }
    if (blank != 0) {
      throw BadInput(fmt::format("{}: line {}: is empty, {}", shown, blank, kWanted));
    }
    series.steps.push_back(static_cast<std::int64_t>(series.seen.size()));
    series.seen.push_back({magnitude_in(text, where), 0});
  }
  if (series.seen.empty()) throw BadInput(shown + ": is empty, " + std::string(kWanted));
  return series;
}

namespace {

/// Largest number of inserted steps: beyond it, a replay shows little but the assumption.
constexpr std::uint64_t kMostFilled = 1'000'000;

[[noreturn]] void refuse_gap(const StepSeries& series, std::size_t before) {
  const std::string found = fmt::format(
      "{}: holds step {} and then step {}: the steps between have no scalars, so it is unknown if "
      "they overflow; record them at every step (docs/recording.md), choose steps without "
      "a gap with ",
      printable(series.log), series.steps[before], series.steps[before + 1]);
  throw InputNeedsOption(found + Option::step + ", or give " + Option::assume_constant_between +
                         fmt::format(" to treat them as equal to step {}", series.steps[before]));
}

/// Throws frames::InputNeedsOption with the widest gap.
[[noreturn]] void refuse_to_fill(const StepSeries& series, std::uint64_t missing) {
  const auto gap = [&](std::size_t at) {
    return static_cast<std::uint64_t>(series.steps[at + 1]) -
           static_cast<std::uint64_t>(series.steps[at]);
  };
  std::size_t widest = 0;
  for (std::size_t i = 0; i + 1 < series.steps.size(); ++i) {
    if (gap(i) > gap(widest)) widest = i;
  }
  const std::string found = fmt::format(
      "{}: holds step {} and then step {}, the widest gap; all gaps together are {} steps, and ",
      printable(series.log), series.steps[widest], series.steps[widest + 1], missing);
  throw InputNeedsOption(
      found + Option::assume_constant_between +
      fmt::format(" fills no more than {}: choose steps on one side of the gap with ",
                  kMostFilled) +
      Option::step + ", or record every step (docs/recording.md)");
}

}  // namespace

void close_gaps(StepSeries& series, bool assume_constant) {
  if (series.steps.empty()) return;
  const std::uint64_t span = static_cast<std::uint64_t>(series.steps.back()) -
                             static_cast<std::uint64_t>(series.steps.front());
  const std::uint64_t missing = span - (series.steps.size() - 1);
  if (missing == 0) return;
  for (std::size_t i = 0; !assume_constant && i + 1 < series.steps.size(); ++i) {
    if (series.steps[i + 1] != series.steps[i] + 1) refuse_gap(series, i);
  }
  if (missing > kMostFilled) refuse_to_fill(series, missing);
  StepSeries whole;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < series.steps.size(); ++i) {
    const std::int64_t end =
        i + 1 < series.steps.size() ? series.steps[i + 1] : series.steps[i] + 1;
    place.push_back(whole.steps.size());
    const auto retried = series.retried.find(i);
    for (std::int64_t step = series.steps[i]; step < end; ++step) {
      const bool own = step == series.steps[i];
      if (retried != series.retried.end()) whole.retried[whole.steps.size()] = retried->second;
      whole.steps.push_back(step);
      whole.filled.push_back(!own);
      whole.seen.push_back(series.seen[i]);
      if (!series.recorded_scale.empty()) {
        whole.recorded_scale.push_back(own ? series.recorded_scale[i] : std::nullopt);
      }
      if (!series.recorded_skip.empty()) {
        whole.recorded_skip.push_back(own ? series.recorded_skip[i] : std::nullopt);
      }
    }
  }
  for (auto& [index, unused] : series.unexplained) index = place[index];
  series.steps = std::move(whole.steps);
  series.seen = std::move(whole.seen);
  series.retried = std::move(whole.retried);
  series.filled = std::move(whole.filled);
  series.recorded_scale = std::move(whole.recorded_scale);
  series.recorded_skip = std::move(whole.recorded_skip);
}

}  // namespace halfscope::analyzers::replay
