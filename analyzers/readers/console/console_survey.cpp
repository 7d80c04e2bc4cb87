// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_survey.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>

#include "analyzers/readers/console/console_engines.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// The entry of a key; null if it is new and the map is full, as of a text that is made to fill it.
template <typename Map>
typename Map::mapped_type* entry_of(Map& map, const typename Map::key_type& key) {
  constexpr std::size_t kMost = 1000;
  return map.size() < kMost || map.contains(key) ? &map[key] : nullptr;
}

/// Which progress bar counts the steps of training: the one that messages and scalars follow. It
/// may begin anew once it is done, in the next epoch, but not before.
class BarSurvey {
 public:
  void take(const Bar& bar) {
    Seen* const seen = entry_of(bars_, bar_name(bar));
    if (seen == nullptr) return;
    now_ = seen;
    const bool back = begins_anew(bar, now_->done);
    now_->again |= back && now_->done < bar.total;
    if (back) now_->done = bar.done;
    now_->stands &= now_->times == 0 || bar.done == now_->done;
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
    if (best == bars_.end() || 2 * best->second.followed < followed_) return std::nullopt;
    const bool of_epochs = best->second.stands && best->second.times > 1;
    return best->second.again || of_epochs ? std::nullopt : std::optional(best->first);
  }

 private:
  struct Seen {
    std::int64_t done = 0;
    std::uint64_t times = 0, followed = 0;  // by messages and scalars
    bool again = false;                     // it began anew before it was done
    bool stands = true;  // it shows one count only, as that of each epoch when it is done
  };
  std::map<std::string, Seen> bars_;
  Seen* now_ = nullptr;
  std::uint64_t followed_ = 0;
};

/// Takes a file's lines, and tells what they are of.
class FileSurvey {
 public:
  void see(const ConsoleLine& line, std::uint64_t number, bool cut) {
    survey_.cut |= cut;
    survey_.tool = std::max(survey_.tool, line.tool);
    if (line.bar) bars_.take(*line.bar);
    fields_ |= line.bar && line.scalars.step;
    if (line.overflow || line.scalars.any()) bars_.follows();
    if (line.overflow) {
      take(*line.overflow);
    } else {
      groups_.line(line);
      if (!line.iteration) engines_.other();
    }
    if (line.periodic) take(*line.periodic, line.scalars, number);
  }

  Survey found(const std::optional<std::uint64_t>& ranks) {
    find_steps();
    survey_.ranks = ranks ? frames::PrintingRanks{*ranks, true, true} : groups_.found();
    survey_.torn_runs = ranks || groups_.some_torn();
    if (groups_.some_torn()) survey_.uneven = groups_.uneven(survey_.ranks.ranks);
    survey_.two_engines = engines_.two();
    survey_.paired = engines_.paired() && !survey_.two_engines;
    survey_.swapped = engines_.swapped();
    return survey_;
  }

 private:
  void take(const Overflow& overflow) {
    ++survey_.overflows;
    survey_.names_scales |= overflow.next.has_value();
    groups_.take(overflow);
    engines_.take(overflow);
    if (overflow.of_named || overflow.confirms) return;
    // A rank that fell silent tells of the first steps alone.
    std::uint64_t* const messages = entry_of(messages_, overflow.rank);
    if (messages == nullptr || ++*messages <= most_messages_) return;
    most_messages_ = *messages;
    survey_.rank = overflow.rank;
  }

  void take(const Periodic& periodic, const LineScalars& scalars, std::uint64_t number) {
    survey_.counts_skips |= periodic.skipped.has_value();
    survey_.counts_intervals |= periodic.of_interval && periodic.skipped.value_or(0) > 0;
    engines_.take(periodic, scalars.learning_rate);
    const auto form = periodic.alone ? std::nullopt : std::optional(periodic.form);
    ToldSteps* const told = entry_of(forms_, form);
    if (told == nullptr) return;
    const std::int64_t steps = periodic.steps;
    told->lines += std::exchange(told->line, number) == number ? 0 : 1;
    if (told->last && steps > *told->last) told->apart = std::max(told->apart, steps - *told->last);
    told->first = std::min(steps, told->first.value_or(steps));
    told->last = std::max(steps, told->last.value_or(steps));
  }

  bool many_lines_an_epoch() const {
    constexpr std::int64_t kMany = 3;
    const auto epochs = forms_.find(kEpochForm);
    if (epochs == forms_.end()) return false;
    const ToldSteps& told = epochs->second;
    return static_cast<std::int64_t>(told.lines) > kMany * (*told.last - *told.first + 1);
  }

  /// By lines that say so by themselves, or else those of the most frequent form, or else a bar, or
  /// else epochs, unless each has many lines. Of messages, epochs cannot tell the step.
  void find_steps() {
    const auto bar = bars_.found();
    const bool by_bar = bar && (!fields_ || survey_.overflows > 0);
    survey_.bar = bar.value_or("");
    if (by_bar || survey_.overflows > 0 || many_lines_an_epoch()) forms_.erase(kEpochForm);
    auto found = forms_.find(std::nullopt);
    if (found == forms_.end()) {
      found = std::ranges::max_element(forms_, {}, [](const auto& f) {
        return std::pair(f.first != kEpochForm, f.second.lines);
      });
    }
    if (found != forms_.end()) {
      survey_.source = StepSource::lines;
      survey_.form = found->first;
      survey_.steps = found->second;
    } else if (by_bar) {
      survey_.source = StepSource::bar;
    }
  }

  Survey survey_;
  RankGroups groups_;
  EngineSurvey engines_;
  BarSurvey bars_;
  std::map<std::optional<int>, std::uint64_t> messages_;  // by rank
  std::uint64_t most_messages_ = 0;
  std::map<std::optional<std::size_t>, ToldSteps> forms_;  // by Periodic::form; empty: `alone`
  bool fields_ = false;  // of bars tell steps: with accumulation the bar itself counts batches
};

}  // namespace

bool begins_anew(const Bar& bar, std::int64_t done) {
  constexpr std::int64_t kRanksApart = 2;
  return bar.done + kRanksApart < done;
}

std::string bar_name(const Bar& bar) {
  std::string name = std::to_string(bar.total) + " ";
  std::ranges::copy_if(bar.of, std::back_inserter(name), [](char c) {
    return c != ' ' && c != '.' && !std::isdigit(static_cast<unsigned char>(c));
  });
  for (const std::string_view number : {"nan", "inf"}) {  // "loss nan:  67%|"
    const std::size_t at = name.find(number);
    if (at != std::string::npos) name.erase(at, number.size());
  }
  return name;
}

Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks,
                 const lines::Pattern* pattern) {
  FileSurvey survey;
  const Wrapping wrapping = pattern == nullptr ? wrapping_in(file) : Wrapping();
  const auto see = [&](const ConsoleLine& line, std::uint64_t number, bool cut) {
    survey.see(line, number, cut);
    return true;
  };
  for_each_console_line(file, wrapping, see, {}, 0, 0, pattern);
  Survey found = survey.found(ranks);
  found.wrapping = wrapping;
  return found;
}

}  // namespace halfscope::analyzers::readers::console
