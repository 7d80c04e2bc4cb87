// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_survey.hpp"

#include <tbb/parallel_pipeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_engines.hpp"
#include "analyzers/readers/console/console_epochs.hpp"
#include "analyzers/readers/console/console_ranks.hpp"
#include "analyzers/readers/console/console_rows.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/lines/blocks.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

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

/// The parts between NUL bytes.
void for_each_between(std::string_view part,
                      const std::function<void(std::string_view part)>& see) {
  while (!part.empty()) {
    const std::size_t end = part.find('\0');
    if (end == std::string_view::npos) return see(part);
    const std::string_view text = part.substr(0, end);
    const bool cut = text.find_last_of("0123456789.+-eE") == text.size() - 1;
    if (!text.empty() && !cut) see(text);
    part = input::without_zeros(part.substr(end));
  }
}

}  // namespace

void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see) {
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    for_each_between(line.substr(0, end), see);
    line.remove_prefix(std::min(line.size(), end + 1));
  }
}

namespace {

constexpr common::Contradiction kNul{
    "a line holds NUL bytes, as after a crash",
    "the text around them is read, except for what they may have cut"};
constexpr common::Contradiction kWrapped{"a terminal wrapped a line", "its rows are joined"};
constexpr common::Contradiction kPerhapsCut{
    "a terminal seems to have wrapped a line within a number", "such rows are skipped"};

/// A line that is odd, for Contradictions.
struct Fault {
  const common::Contradiction* kind;
  std::uint64_t line;
  std::string found = {};
};

/// The lines of a file, each of one row, or of those that a terminal made of it.
class WholeLines {
 public:
  WholeLines(common::TextLines& lines, const Wrapping& wrapping)
      : lines_(lines), wrapping_(wrapping) {}

  /// Of several rows: put together in `joined`.
  std::optional<std::string_view> next(std::string& joined, std::vector<Fault>& faults) {
    const auto row = lines_.next();
    doubtful_ = false;
    if (!row) return row;
    number_ = lines_.number();
    if (row->find('\0') != std::string_view::npos) faults.push_back({&kNul, number_});
    if (!goes_on(*row)) {
      const auto peek = [this] { return lines_.peek(); };
      return lines::read_block(
                 *row, peek, [this] { lines_.next(); }, joined)
                 ? joined
                 : *row;
    }
    doubtful_ = !wrapping_.certain && may_be_one_number(*row, *lines_.peek());
    if (doubtful_) faults.push_back({&kPerhapsCut, number_, columns()});
    if (!wrapping_.certain) return row;
    faults.push_back({&kWrapped, number_, columns()});
    return join(*row, joined);
  }
  /// The numbers of the row are not to be used: one may go on in the next row.
  bool doubtful() const { return doubtful_; }
  /// Of the first row.
  std::uint64_t number() const { return number_; }

 private:
  bool goes_on(std::string_view row) {
    if (wrapping_.columns == 0 || row.size() < wrapping_.columns) return false;
    const auto next = lines_.peek();
    return next && wrapping_.goes_on(row, *next);
  }
  std::string columns() const { return fmt::format("{} columns", wrapping_.columns); }
  std::string_view join(std::string_view row, std::string& joined) {
    joined = row;
    for (bool more = true; more;) {
      const auto next = lines_.next();
      joined += *next;
      more = goes_on(*next);
    }
    return joined;
  }

  common::TextLines& lines_;
  const Wrapping& wrapping_;
  std::uint64_t number_ = 0;
  bool doubtful_ = false;
};

/// Whether messages without a blank between them stand within one another: their numbers are then
/// of neither, so that they are not the same and no power of two, or one scale falls to two others.
bool are_torn(const std::vector<ConsoleLine>& lines) {
  const auto leaves_power_of_two = [](const ConsoleLine& line) {
    int exponent = 0;
    return line.overflow && line.overflow->next &&
           std::frexp(*line.overflow->next, &exponent) == 0.5;
  };
  const ConsoleLine& first = lines.front();
  return std::ranges::any_of(lines, [&](const ConsoleLine& line) {
    if (line.overflow == first.overflow) return false;
    const bool falls_twice = line.overflow && line.overflow->attempted && first.overflow &&
                             line.overflow->attempted == first.overflow->attempted;
    return falls_twice || !leaves_power_of_two(line) || !leaves_power_of_two(first);
  });
}

/// A part of a line, and what it says.
struct ReadPart {
  std::string_view text = {};
  std::uint64_t number = 0;
  bool cut = false, doubtful = false;
  std::string plain = {};  ///< the text without colours, where it had some
  std::vector<ConsoleLine> lines = {};

  void read() {
    const std::string_view shown = without_colours(text, plain);
    lines.push_back(console_line(shown));
    if (doubtful) {
      const bool of_overflow = lines.front().overflow.has_value();
      lines.front() = {};
      lines.front().cut_overflow = of_overflow;
    }
    if (!lines.front().overflow) return;
    lines.clear();
    bool glued = false;
    for (const std::string_view message : messages_in(shown)) {
      glued |= !lines.empty() && message.front() != ' ';
      lines.push_back(console_line(message));
    }
    const std::size_t begun = messages_begun(shown);
    if (begun <= lines.size() && !(glued && are_torn(lines))) return;
    lines.assign(std::max(begun, lines.size()), ConsoleLine());
    for (ConsoleLine& line : lines) line.cut_overflow = line.torn = true;
  }
};

/// Parts of some lines that follow each other.
struct Batch {
  std::vector<ReadPart> parts = {};
  std::vector<Fault> faults = {};
  // Lines of several rows that parts are of, and a free one.
  std::deque<std::string> joined = std::deque<std::string>(1);
  std::vector<common::TextLines::Block> blocks = {};  // that parts are of
};

/// Null after the last one.
std::shared_ptr<Batch> next_batch(const common::TextLines& lines, WholeLines& whole) {
  constexpr std::size_t kParts = 1024;
  auto batch = std::make_shared<Batch>();
  while (batch->parts.size() < kParts) {
    const auto line = whole.next(batch->joined.back(), batch->faults);
    if (!line) break;
    if (batch->blocks.empty() || batch->blocks.back() != lines.block()) {
      batch->blocks.push_back(lines.block());
    }
    for_each_part(*line, [&](std::string_view part) {
      if (is_blank(part)) return;
      batch->parts.push_back({part, whole.number(), lines.cut(), whole.doubtful()});
    });
    if (line->data() == batch->joined.back().data()) batch->joined.emplace_back();
  }
  const bool none = batch->parts.empty() && batch->faults.empty();
  return none ? nullptr : batch;
}

}  // namespace

void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress, std::uint64_t before,
                           std::uint64_t in_all, common::Contradictions* faults) {
  constexpr std::size_t kBatches = 8;  // in memory
  using Shared = std::shared_ptr<Batch>;
  common::TextLines lines(file, progress, before, in_all);
  WholeLines whole(lines, wrapping);
  EpochSteps epochs;
  const auto next = [&](tbb::flow_control& flow) {
    auto batch = next_batch(lines, whole);
    if (!batch) flow.stop();
    return batch;
  };
  const auto read = [](const Shared& batch) {
    for (ReadPart& part : batch->parts) part.read();
    return batch;
  };
  const auto see_all = [&](const Shared& batch) {
    for (Fault& fault : batch->faults) {
      if (faults != nullptr) faults->add(*fault.kind, fault.line, std::move(fault.found));
    }
    for (ReadPart& part : batch->parts) {
      for (ConsoleLine& line : part.lines) {
        epochs.to_steps(line);
        see(line, part.number, part.cut);
      }
    }
  };
  using Mode = tbb::filter_mode;
  tbb::parallel_pipeline(kBatches,
                         tbb::make_filter<void, Shared>(Mode::serial_in_order, next) &
                             tbb::make_filter<Shared, Shared>(Mode::parallel, read) &
                             tbb::make_filter<Shared, void>(Mode::serial_in_order, see_all));
}

Wrapping wrapping_in(const log::OpenPath& file) {
  return wrapping_of([&file]() -> NextRow {
    return [lines = std::make_shared<common::TextLines>(file)] { return lines->next(); };
  });
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

Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks) {
  FileSurvey survey;
  const Wrapping wrapping = wrapping_in(file);
  for_each_console_line(file, wrapping, [&](const ConsoleLine& line, std::uint64_t, bool cut) {
    survey.see(line, cut);
  });
  Survey found = survey.found(ranks);
  found.wrapping = wrapping;
  return found;
}

}  // namespace halfscope::analyzers::readers::console
