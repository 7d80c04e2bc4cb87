// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_survey.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/console/console_engines.hpp"
#include "analyzers/readers/console/console_ranks.hpp"
#include "analyzers/readers/console/console_rows.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// Which progress bar counts the steps of training: the one that messages and scalars follow, if it
/// goes through the log and is never started again, as those of an epoch each are.
class BarSurvey {
 public:
  void take(const Bar& bar) {
    const std::string name = bar_name(bar);
    if (bars_.size() >= kMostBars && bars_.count(name) == 0) return;
    now_ = &bars_[name];
    if (bar.done + kRanksApart < now_->done) now_->again = true;
    now_->done = std::max(now_->done, bar.done);
    ++now_->times;
  }
  void follows() {
    if (now_ == nullptr) return;
    ++now_->followed;
    ++followed_;
  }
  std::optional<std::string> found() const {
    const auto best = std::ranges::max_element(bars_, {}, [](const auto& entry) {
      return std::pair(entry.second.followed, entry.second.times);
    });
    if (best == bars_.end() || best->second.again || 2 * best->second.followed < followed_) {
      return std::nullopt;
    }
    return best->first;
  }

 private:
  static constexpr std::int64_t kRanksApart = 2;  // each may print the bar
  static constexpr std::size_t kMostBars = 1000;
  struct Seen {
    std::int64_t done = 0;
    std::uint64_t times = 0, followed = 0;  // by messages and scalars
    bool again = false;
  };
  std::map<std::string, Seen> bars_;
  Seen* now_ = nullptr;
  std::uint64_t followed_ = 0;
};

/// Which rank printed most messages: one that fell silent tells of the first steps alone.
class MessagesByRank {
 public:
  void take(const Overflow& overflow) {
    if (overflow.of_named || overflow.confirms) return;
    if (messages_.size() >= kMostRanks && !messages_.contains(overflow.rank)) return;
    if (messages_[overflow.rank]++ == 0) order_.push_back(overflow.rank);
  }
  std::optional<int> most() const {
    const auto found =
        std::ranges::max_element(order_, {}, [&](const auto& rank) { return messages_.at(rank); });
    return found == order_.end() ? std::nullopt : *found;
  }

 private:
  static constexpr std::size_t kMostRanks = 100'000;
  std::map<std::optional<int>, std::uint64_t> messages_;
  std::vector<std::optional<int>> order_;  // of the first message
};

/// The steps that lines of one form tell.
struct StepSurvey {
  std::uint64_t lines = 0;
  std::optional<std::int64_t> first, last;
  std::int64_t apart = 1;

  void take(std::int64_t steps) {
    ++lines;
    if (last && steps > *last) apart = std::max(apart, steps - *last);
    first = std::min(steps, first.value_or(steps));
    last = std::max(steps, last.value_or(steps));
  }
};

/// Which lines tell the steps of training: those that say so by themselves, or else the most
/// frequent form.
class FormSurvey {
 public:
  void take(const Periodic& periodic) {
    if (periodic.alone) return alone_.take(periodic.steps);
    if (forms_.size() < kMostForms || forms_.contains(periodic.form)) {
      forms_[periodic.form].take(periodic.steps);
    }
  }
  void put(Survey& survey) const {
    const StepSurvey* found = &alone_;
    if (alone_.lines == 0) {
      const auto most = std::ranges::max_element(
          forms_, {}, [](const auto& entry) { return entry.second.lines; });
      if (most == forms_.end()) return;
      survey.form = most->first;
      found = &most->second;
    }
    survey.steps = StepSource::lines;
    survey.first = found->first;
    survey.last = found->last;
    survey.apart = found->apart;
  }

 private:
  static constexpr std::size_t kMostForms = 64;
  StepSurvey alone_;
  std::map<std::size_t, StepSurvey> forms_;
};

}  // namespace

std::string bar_name(const Bar& bar) {
  std::string name = std::to_string(bar.total) + " ";
  std::ranges::copy_if(bar.of, std::back_inserter(name), [](char c) {
    return c != ' ' && c != '.' && !std::isdigit(static_cast<unsigned char>(c));
  });
  return name;
}

namespace {

/// Takes a file's lines, and tells what they are of.
class FileSurvey {
 public:
  void see(const ConsoleLine& line, bool cut) {
    survey_.cut |= cut;
    survey_.tool = std::max(survey_.tool, line.tool);
    if (line.bar) bars_.take(*line.bar);
    fields_ |= line.bar && line.scalars.step;
    if (line.overflow || line.scalars.any()) bars_.follows();
    if (line.overflow) {
      take(*line.overflow);
    } else {
      groups_.line(line);
      if (!line.iteration) pairs_.other();
    }
    if (line.periodic) take(*line.periodic, line.scalars);
  }

  /// ranks: how many print each message, where a user says so
  Survey found(const std::optional<std::uint64_t>& ranks) {
    forms_.put(survey_);
    const auto bar = bars_.found();
    const bool by_bar = bar && (!fields_ || survey_.overflows > 0);
    if (survey_.steps == StepSource::none && by_bar) survey_.steps = StepSource::bar;
    survey_.bar = bar.value_or("");
    survey_.ranks = ranks ? frames::PrintingRanks{*ranks, true, true} : groups_.found();
    survey_.torn_runs = ranks || groups_.some_torn();
    if (groups_.some_torn()) survey_.uneven = groups_.uneven(survey_.ranks.ranks);
    survey_.rank = by_rank_.most();
    survey_.two_engines = engines_.two();
    survey_.paired = pairs_.found() && !survey_.two_engines;
    survey_.swapped = engines_.swapped();
    return survey_;
  }

 private:
  void take(const Overflow& overflow) {
    ++survey_.overflows;
    survey_.names_scales |= overflow.next.has_value();
    groups_.take(overflow);
    pairs_.take(overflow);
    by_rank_.take(overflow);
    engines_.take(overflow);
  }

  void take(const Periodic& periodic, const LineScalars& scalars) {
    forms_.take(periodic);
    survey_.counts_skips |= periodic.skipped.has_value();
    survey_.counts_intervals |= periodic.of_interval && periodic.skipped.value_or(0) > 0;
    engines_.take(periodic, scalars.learning_rate);
  }

  Survey survey_;
  RankGroups groups_;
  EngineSurvey engines_;
  PairedMessages pairs_;
  MessagesByRank by_rank_;
  BarSurvey bars_;
  FormSurvey forms_;
  bool fields_ = false;  // of bars tell steps: with accumulation the bar itself counts batches
};

}  // namespace

Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks,
                 const lines::Pattern* pattern) {
  FileSurvey survey;
  const Wrapping wrapping = pattern == nullptr ? wrapping_in(file) : Wrapping();
  const auto see = [&](const ConsoleLine& line, std::uint64_t, bool cut) { survey.see(line, cut); };
  for_each_console_line(file, wrapping, see, {}, 0, 0, nullptr, pattern);
  Survey found = survey.found(ranks);
  found.wrapping = wrapping;
  return found;
}

}  // namespace halfscope::analyzers::readers::console
