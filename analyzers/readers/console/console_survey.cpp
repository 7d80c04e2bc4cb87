// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_survey.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "analyzers/readers/console/console_engines.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// Returns the value of a key; null if the key is new and the map is full, which only a text made
/// for it reaches.
template <typename Map>
typename Map::mapped_type* entry_of(Map& map, const typename Map::key_type& key) {
  constexpr std::size_t kMost = 1000;
  return map.size() < kMost || map.contains(key) ? &map[key] : nullptr;
}

/// Finds the number of ranks that print each message without naming a rank, from the lengths of
/// groups of equal messages. Ranks lower the scale alike at the same step. One process prints equal
/// messages only at the minimum, or if the scale grew between them.
class RankSurvey {
 public:
  void take(const Overflow& overflow) {
    if (overflow.rank || overflow.of_named || overflow.confirms) return;
    if (scaler_.value_or(overflow.scaler) != overflow.scaler) return;
    scaler_ = overflow.scaler;
    ++messages_;
    repeated_ |= last_ == overflow;
    last_ = overflow;
    open_.take(overflow);
  }
  /// Takes a line without a message.
  void line(const ConsoleLine& line) {
    last_.reset();
    torn_ |= line.torn;
    open_.line(line);
  }
  /// Sets the results after the last line. `asked`: --ranks.
  void find(const std::optional<std::uint64_t>& asked, Survey& survey) {
    open_.end_all();
    // Every rank prints a message without a scale; if others have one, these do not count.
    if (lengths_.size() > 1) lengths_.erase({-1, -1});
    survey.ranks = ranks();
    if (asked) survey.ranks = {*asked, true, true};
    survey.torn_runs = asked || some_torn_;
    for (const auto& [scales, lengths] : lengths_) {
      const bool even = lengths.size() == 1 && lengths.begin()->first == survey.ranks.ranks;
      if (some_torn_ && !even) survey.uneven.insert(scales);
    }
  }

 private:
  using Lengths = std::map<std::uint64_t, std::uint64_t>;  // number of groups by length

  static constexpr std::size_t kEnough = 3;  // as many messages have equal groups by no chance

  void add(const MessageGroup& group) {
    constexpr std::size_t kMostMessages = 10'000;
    const Scales scales = group.scales();
    if (lengths_.size() < kMostMessages || lengths_.contains(scales)) {
      ++lengths_[scales][group.count];
    }
  }

  /// Returns the most frequent length, of several the shortest.
  static std::uint64_t usual_of(const Lengths& lengths) {
    return std::ranges::max_element(lengths, {}, &Lengths::value_type::second)->first;
  }

  /// Returns true for the message with the lowest scale. It repeats if that is the minimum.
  bool is_lowest(const Scales& scales) const {
    const auto lowest = lengths_.upper_bound({-1, -1});
    return lowest != lengths_.end() && lowest->first == scales;
  }

  /// Returns true if one process prints: of many messages none is repeated, or most come once. The
  /// message with the lowest scale does not count.
  bool one_prints() const {
    constexpr std::uint64_t kMany = 12;
    if (!repeated_ && messages_ >= kMany) return true;
    const bool apart = lengths_.size() >= kEnough;
    const auto once = std::ranges::count_if(lengths_, [&](const auto& message) {
      return usual_of(message.second) == 1 && !(apart && is_lowest(message.first));
    });
    return 2 * static_cast<std::size_t>(once) > lengths_.size() - (apart ? 1 : 0);
  }

  /// Returns true if most messages stand in groups of this length, or of multiples of it.
  bool are_multiples(std::uint64_t length) const {
    constexpr double kMost = 0.8;
    std::uint64_t messages = 0, in_multiples = 0;
    for (const auto& [scales, lengths] : lengths_) {
      for (const auto& [of, times] : lengths) {
        messages += of * times;
        if (of % length == 0) in_multiples += of * times;
      }
    }
    return static_cast<double>(in_multiples) >= kMost * static_cast<double>(messages);
  }

  frames::PrintingRanks ranks() {
    if (lengths_.empty() || (one_prints() && !torn_)) return {};
    std::uint64_t divisor = 0, longest = 2;
    Lengths each;  // number of messages by their usual length: at the minimum a message may repeat
    for (const auto& [scales, lengths] : lengths_) {
      ++each[usual_of(lengths)];
      for (const auto& [length, times] : lengths) divisor = std::gcd(divisor, length);
      const bool counts = lengths_.size() == 1 || !is_lowest(scales);
      if (counts) longest = std::max(longest, lengths.rbegin()->first);
    }
    const std::uint64_t usual = usual_of(each);
    // If the divisor is not the length of any group, lines may be lost.
    const bool certain = lengths_.size() >= kEnough && !torn_ && usual == divisor;
    if (divisor > 1) return {.ranks = divisor, .certain = certain};
    some_torn_ = usual > 1 && each.at(usual) >= kEnough && are_multiples(usual);
    return {.ranks = some_torn_ ? usual : longest, .certain = false};
  }

  MessageGroups open_{[this](const MessageGroup& group) { add(group); }};
  std::optional<int> scaler_;          // Apex: only its messages count
  std::map<Scales, Lengths> lengths_;  // by message
  std::uint64_t messages_ = 0;
  std::optional<Overflow> last_;  // the message on the line before
  bool repeated_ = false;         // a message follows an equal one
  bool torn_ = false;             // a line has a message of another process within it
  bool some_torn_ = false;  // most groups have the same length, others were torn or lost lines
};

/// Finds out whether two engines print into a log.
class EngineSurvey {
 public:
  void take(const Overflow& overflow) {
    if (!overflow.attempted || !overflow.next || overflow.of_named) return;
    // Without a message, the scale of one engine does not fall.
    if (overflow.rank && scale_ && *overflow.attempted < *scale_) ++impossible_;
    scale_ = overflow.next;
    const std::size_t engine = split_.of(overflow);
    for (auto& since : since_) ++since[engine];
    if (!rank_) rank_ = overflow.rank;
    if (!rank_ || rank_ != overflow.rank) return;
    const bool falls = *overflow.next < *overflow.attempted;
    if (falls && last_ == overflow && repeated_.size() < 2) repeated_.insert(*overflow.attempted);
    last_ = overflow;
  }
  void take(const Periodic& counter, std::optional<double> learning_rate) {
    if (!counter.skipped || counter.of_interval) return;
    const std::size_t engine = split_.of(counter);
    if (engine > 0 && (before_ != counter.skipped || rate_before_ != learning_rate)) ++differ_;
    before_ = counter.skipped;
    rate_before_ = learning_rate;
    const std::int64_t more = *counter.skipped - std::exchange(skipped_[engine], *counter.skipped);
    for (std::size_t of = 0; of < kEngines; ++of) {
      off_[engine][of] += std::abs(more - std::exchange(since_[engine][of], 0));
    }
  }
  /// Takes a line that is no message.
  void other() { last_.reset(); }

  void find(Survey& survey) const {
    survey.two_engines = differ_ >= 2 || (impossible_ >= 2 && split_.returns() >= 2);
    survey.swapped = off_[0][1] + off_[1][0] < off_[0][0] + off_[1][1];
    // One engine has a scale again only after it grew.
    survey.paired = repeated_.size() >= 2 && !survey.two_engines;
  }

 private:
  EngineSplit split_;
  std::optional<std::int64_t> before_;  // the last counter
  std::optional<double> rate_before_;   // the learning rate beside it
  std::optional<double> scale_;         // after the last message of any engine
  std::uint64_t impossible_ = 0;        // messages that one engine cannot print
  std::uint64_t differ_ = 0;            // pairs of counters of one step that differ
  /// By engine of a counter: its value, and by engine of a message: messages since the counter, and
  /// the sum of their differences from what the counters added.
  std::array<std::int64_t, kEngines> skipped_{};
  std::array<std::array<std::int64_t, kEngines>, kEngines> since_{}, off_{};
  std::optional<int> rank_;       // the first rank to print
  std::optional<Overflow> last_;  // its message on the line before
  std::set<double> repeated_;     // scales of its messages that follow an equal one; two at most
};

/// Finds the progress bar that counts the steps of training: the one that most messages and scalars
/// follow.
class BarSurvey {
 public:
  void take(const Bar& bar) {
    Seen* const seen = entry_of(bars_, bar_name(bar));
    if (seen == nullptr) return;
    now_ = seen;
    const bool back = begins_anew(bar, seen->done);
    seen->restarts |= back && seen->done < bar.total;
    seen->stands &= seen->times == 0 || back || bar.done == seen->done;
    seen->done = back ? bar.done : std::max(seen->done, bar.done);
    ++seen->times;
  }
  /// Takes a message or scalars.
  void follows() {
    if (now_ == nullptr) return;
    ++now_->followed;
    ++followed_;
  }
  /// Returns the name of the bar. Empty if there is none.
  std::string found() const {
    const auto best = std::ranges::max_element(bars_, {}, [](const auto& entry) {
      return std::pair(entry.second.followed, entry.second.times);
    });
    if (best == bars_.end()) return {};
    const Seen& seen = best->second;
    const bool of_epochs = seen.stands && seen.times > 1;
    return 2 * seen.followed < followed_ || seen.restarts || of_epochs ? "" : best->first;
  }

 private:
  struct Seen {
    std::int64_t done = 0;
    std::uint64_t times = 0, followed = 0;
    bool restarts = false;  // it began anew before it was done, which no bar of an epoch does
    bool stands = true;     // it has one count only, such as an epoch's when it is done
  };
  std::map<std::string, Seen> bars_;
  Seen* now_ = nullptr;
  std::uint64_t followed_ = 0;
};

/// Surveys the lines of a file, in order.
class FileSurvey {
 public:
  void take(const ConsoleLine& line, std::uint64_t number) {
    survey_.tool = std::max(survey_.tool, line.tool);
    if (line.bar) bars_.take(*line.bar);
    fields_ |= line.bar && line.scalars.step;
    if (line.overflow || line.scalars.any()) bars_.follows();
    if (line.overflow) {
      take(*line.overflow);
    } else {
      ranks_.line(line);
      if (!line.iteration) engines_.other();
    }
    if (line.periodic) take(*line.periodic, line.scalars.learning_rate, number);
  }

  Survey found(const std::optional<std::uint64_t>& ranks) {
    find_steps();
    ranks_.find(ranks, survey_);
    engines_.find(survey_);
    return survey_;
  }

 private:
  void take(const Overflow& overflow) {
    ++survey_.overflows;
    survey_.names_scales |= overflow.next.has_value();
    ranks_.take(overflow);
    engines_.take(overflow);
    if (overflow.of_named || overflow.confirms) return;
    std::uint64_t* const messages = entry_of(messages_, overflow.rank);
    if (messages == nullptr || ++*messages <= most_messages_) return;
    most_messages_ = *messages;
    survey_.rank = overflow.rank;
  }

  void take(const Periodic& periodic, std::optional<double> learning_rate, std::uint64_t number) {
    survey_.counts_skips |= periodic.skipped.has_value();
    survey_.counts_intervals |= periodic.of_interval && periodic.skipped.value_or(0) > 0;
    take_updates(periodic);
    engines_.take(periodic, learning_rate);
    const auto form = periodic.alone ? std::nullopt : std::optional(periodic.form);
    PrintedSteps* const of_form = entry_of(forms_, form);
    if (of_form == nullptr) return;
    const std::int64_t steps = periodic.steps, last = of_form->last.value_or(steps);
    of_form->lines += std::exchange(of_form->line, number) == number ? 0 : 1;
    of_form->apart = std::max(of_form->apart, steps - last);
    of_form->first = std::min(steps, of_form->first.value_or(steps));
    of_form->last = std::max(steps, last);
  }

  /// Two steps or more with as many updates show that gradients are not accumulated.
  void take_updates(const Periodic& periodic) {
    if (!periodic.updates) return;
    const bool as_many =
        updates_ && periodic.steps - updates_->steps == *periodic.updates - *updates_->updates;
    if (!as_many) updates_ = periodic;
    survey_.updates_each_step |= periodic.steps - updates_->steps >= 2;
  }

  bool many_lines_an_epoch() const {
    constexpr std::int64_t kMany = 3;
    const auto epochs = forms_.find(kEpochForm);
    if (epochs == forms_.end()) return false;
    const PrintedSteps& printed = epochs->second;
    return static_cast<std::int64_t>(printed.lines) > kMany * (*printed.last - *printed.first + 1);
  }

  /// Finds what has the steps: lines that are surely of training, else those of the most frequent
  /// form, else a bar, else epochs. Epochs with many lines each or beside messages are no steps.
  void find_steps() {
    survey_.bar = bars_.found();
    const bool by_bar = !survey_.bar.empty() && (!fields_ || survey_.overflows > 0);
    if (by_bar || survey_.overflows > 0 || many_lines_an_epoch()) forms_.erase(kEpochForm);
    const auto found = std::ranges::max_element(forms_, {}, [](const auto& form) {
      return std::tuple(!form.first, form.first != kEpochForm, form.second.lines);
    });
    if (found != forms_.end()) {
      survey_.source = StepSource::lines;
      survey_.form = found->first;
      survey_.steps = found->second;
    } else if (by_bar) {
      survey_.source = StepSource::bar;
    }
  }

  Survey survey_;
  RankSurvey ranks_;
  EngineSurvey engines_;
  BarSurvey bars_;
  std::map<std::optional<int>, std::uint64_t> messages_;  // by rank
  std::uint64_t most_messages_ = 0;
  std::optional<Periodic> updates_;  // the first of the lines since the last skipped step
  std::map<std::optional<std::size_t>, PrintedSteps> forms_;  // by Periodic::form; empty: `alone`
  bool fields_ = false;  // some bar has a field with the step: then the bar may count batches
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
  bool any_cut = false;
  const auto see = [&](const ConsoleLine& line, std::uint64_t number, bool cut) {
    survey.take(line, number);
    any_cut |= cut;
    return true;
  };
  for_each_console_line(file, wrapping, see, {}, 0, 0, pattern);
  Survey found = survey.found(ranks);
  found.cut = any_cut;
  found.wrapping = wrapping;
  return found;
}

}  // namespace halfscope::analyzers::readers::console
