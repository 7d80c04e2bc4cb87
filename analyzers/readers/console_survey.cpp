// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console_survey.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "analyzers/readers/console_engines.hpp"
#include "analyzers/readers/console_ranks.hpp"
#include "analyzers/readers/console_words.hpp"
#include "analyzers/readers/text_lines.hpp"

namespace halfscope::readers {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// Whether one progress bar goes through the log: one number of steps in all, never started again.
/// Bars of an epoch each, or of validation between, tell no steps.
class BarSurvey {
 public:
  void take(const Bar& bar) {
    if (total_ && *total_ != bar.total) several_ = true;
    if (bar.done + kRanksApart < done_) several_ = true;
    total_ = bar.total;
    done_ = std::max(done_, bar.done);
  }
  bool usable() const { return total_ && !several_; }

 private:
  static constexpr std::int64_t kRanksApart = 2;  // each may print a bar
  std::optional<std::int64_t> total_;
  std::int64_t done_ = 0;
  bool several_ = false;
};

void take_steps(const Periodic& periodic, Survey& survey) {
  survey.steps = StepSource::lines;
  survey.counts_skips |= periodic.skipped.has_value();
  if (survey.last && periodic.steps > *survey.last) {
    survey.apart = std::max(survey.apart, periodic.steps - *survey.last);
  }
  survey.first = std::min(periodic.steps, survey.first.value_or(periodic.steps));
  survey.last = std::max(periodic.steps, survey.last.value_or(periodic.steps));
}

}  // namespace

void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    see(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 1));
  }
}

void for_each_console_line(const std::filesystem::path& file, const SeeLine& see,
                           const analyzers::Progress& progress, std::uint64_t before,
                           std::uint64_t in_all) {
  TextLines lines(file, progress, before, in_all);
  std::string buffer;
  while (const auto line = lines.next()) {
    for_each_part(*line, [&](std::string_view part) {
      if (is_blank(part)) return;
      const std::string_view plain = without_colours(part, buffer);
      const ConsoleLine found = console_line(plain);
      const bool cut = lines.cut();
      if (!found.overflow) return see(found, lines.number(), cut);
      for (const std::string_view message : messages_in(plain)) {
        see(console_line(message), lines.number(), cut);
      }
    });
  }
}

Survey survey_of(const std::filesystem::path& file, const std::optional<std::uint64_t>& ranks) {
  Survey survey;
  RankRuns runs;
  EngineSurvey engines;
  BarSurvey bars;
  for_each_console_line(file, [&](const ConsoleLine& line, std::uint64_t, bool) {
    if (line.bar) bars.take(*line.bar);
    if (line.overflow) {
      survey.overflows = true;
      runs.take(*line.overflow);
      engines.take(*line.overflow);
    } else if (!line.iteration) {
      runs.other();
    }
    if (!line.periodic) return;
    take_steps(*line.periodic, survey);
    engines.take(*line.periodic, line.scalars.learning_rate);
  });
  if (survey.steps == StepSource::none && bars.usable()) survey.steps = StepSource::bar;
  survey.ranks = ranks ? analyzers::PrintingRanks{*ranks, true, true} : runs.found();
  survey.two_engines = engines.two();
  survey.swapped = engines.swapped();
  return survey;
}

}  // namespace halfscope::readers
