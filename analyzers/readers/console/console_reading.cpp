// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_reading.hpp"

#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_headers.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/lines/blocks.hpp"
#include "analyzers/readers/lines/columns.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// The lines of a file. A wrapped line is joined from its rows, and a block of lines is one line.
class WholeLines {
 public:
  WholeLines(common::TextLines& lines, const Wrapping& wrapping, bool blocks)
      : lines_(lines), wrapping_(wrapping), blocks_(blocks) {}

  /// Returns the next line; empty after the last line. A joined line is stored in `joined`.
  std::optional<std::string_view> next(std::string& joined) {
    auto row = lines_.next();
    if (!row) return row;
    number_ = lines_.number();
    if (!goes_on(*row)) {
      if (!blocks_) return row;
      const auto peek = [this] { return lines_.peek(); };
      const auto skip = [this] { lines_.next(); };
      return lines::read_block(*row, peek, skip, joined) ? joined : *row;
    }
    joined = *row;
    for (bool more = true; more; joined += *row) {
      row = lines_.next();
      more = goes_on(*row);
    }
    return joined;
  }
  /// Returns the number of the line's first row, from 1.
  std::uint64_t number() const { return number_; }

 private:
  bool goes_on(std::string_view row) {
    if (wrapping_.columns == 0 || row.size() < wrapping_.columns) return false;
    const auto next = lines_.peek();
    return next && wrapping_.goes_on(row, *next);
  }

  common::TextLines& lines_;
  const Wrapping& wrapping_;
  bool blocks_;  // true: blocks of lines are joined
  std::uint64_t number_ = 0;
};

/// Converts the batches of epochs to steps of a run, for a file's lines in order. The first epoch
/// keeps its printed numbers, as does a later epoch whose numbers continue. Any other epoch begins
/// after all batches of the previous epoch if lines state their number, else after its last printed
/// batch; `in_epoch` then shows that the step is a lower bound. Clears lines of other ranks than
/// the first.
class EpochSteps {
 public:
  void to_steps(ConsoleLine& line) {
    if (!line.periodic || !line.periodic->in_epoch) return;
    Periodic& periodic = *line.periodic;
    const InEpoch in_epoch = *std::exchange(periodic.in_epoch, std::nullopt);
    if (!rank_) rank_ = in_epoch.rank;
    if (rank_ != in_epoch.rank) {
      line = {};
      return;
    }
    if (!in_epoch.epoch) return;
    Counter& counter =
        counters_[counters_.size() < kMostForms || counters_.contains(periodic.form) ? periodic.form
                                                                                     : 0];
    const std::int64_t begin = counter.begin_of(*in_epoch.epoch, periodic.steps);
    counter.printed = periodic.steps;
    counter.batches = in_epoch.batches;
    periodic.steps += begin;
    if (begin > 0 && !in_epoch.batches) periodic.in_epoch = in_epoch;
    if (periodic.steps > kMostSteps) line.periodic.reset();
  }

 private:
  static constexpr std::size_t kMostEpochs = 100'000, kMostForms = 64;
  /// The epochs in lines of one form.
  struct Counter {
    std::map<std::int64_t, std::int64_t> begins = {};  // steps before each epoch
    std::int64_t printed = 0;                          // batch in the last line
    std::optional<std::int64_t> batches = {};          // number in its epoch; empty: unknown

    /// Returns the steps before an epoch. A repeated epoch is a restart: erases later epochs.
    std::int64_t begin_of(std::int64_t epoch, std::int64_t now) {
      begins.erase(begins.upper_bound(epoch), begins.end());
      if (const auto known = begins.find(epoch); known != begins.end()) return known->second;
      std::int64_t begin = begins.empty() ? 0 : begins.rbegin()->second;
      if (!begins.empty() && now <= printed)
        begin += batches.value_or(printed + (now == 0 ? 1 : 0));
      if (begins.size() < kMostEpochs) begins.emplace(epoch, begin);
      return begin;
    }
  };

  std::optional<std::int64_t> rank_;
  std::map<std::size_t, Counter> counters_;
};

/// Returns true if messages in one line, without a blank between them, were torn into one another.
/// They then differ, and a new scale is no power of two, or one scale is reduced to two others.
bool are_torn(const std::vector<ConsoleLine>& lines) {
  const auto leaves_power_of_two = [](const ConsoleLine& line) {
    return line.overflow && line.overflow->next && exact_log2(*line.overflow->next);
  };
  const ConsoleLine& first = lines.front();
  return std::ranges::any_of(lines, [&](const ConsoleLine& line) {
    if (line.overflow == first.overflow) return false;
    const bool falls_twice = line.overflow && line.overflow->attempted && first.overflow &&
                             line.overflow->attempted == first.overflow->attempted;
    return falls_twice || !leaves_power_of_two(line) || !leaves_power_of_two(first);
  });
}

/// A part of a line, and its results.
struct ReadPart {
  std::string_view text = {};
  std::uint64_t number = 0;
  bool cut = false;
  std::string plain = {};  ///< storage of the text without escape sequences
  std::vector<ConsoleLine> lines = {};

  void read(LineReader& reader) {
    const std::string_view shown = without_colours(text, plain);
    lines.push_back(reader.read(shown));
    if (!lines.front().overflow) return;
    lines.clear();
    bool glued = false;
    for (const std::string_view message : messages_in(shown)) {
      glued |= !lines.empty() && message.front() != ' ';
      lines.push_back(reader.read(message));
    }
    const std::size_t begun = messages_begun(shown);
    if (begun <= lines.size() && !(glued && are_torn(lines))) return;
    lines.assign(std::max(begun, lines.size()), ConsoleLine());
    for (ConsoleLine& line : lines) line.torn = true;
  }
};

/// Parts of some consecutive lines.
struct Batch {
  std::vector<ReadPart> parts = {};
  // Storage of joined lines and of rows of tables, to which parts refer. The last of each is free.
  std::deque<std::string> joined = std::deque<std::string>(1), rows = joined;
  std::vector<common::TextLines::Block> blocks = {};  // storage of all other lines
};

/// Returns the next batch, with at least `parts` parts unless the file ends; null after the last
/// batch. columns: null if tables are not read.
std::shared_ptr<Batch> next_batch(const common::TextLines& lines, WholeLines& whole,
                                  lines::Columns* columns, std::size_t parts) {
  auto batch = std::make_shared<Batch>();
  while (batch->parts.size() < parts) {
    const auto line = whole.next(batch->joined.back());
    if (!line) break;
    if (batch->blocks.empty() || batch->blocks.back() != lines.block()) {
      batch->blocks.push_back(lines.block());
    }
    for_each_part(*line, [&](std::string_view part) {
      if (part.find_first_not_of(" \t\r") == std::string_view::npos) return;
      std::string& row = batch->rows.back();
      const bool of_table = columns != nullptr && columns->read_row(part, row);
      batch->parts.push_back({of_table ? row : part, whole.number(), lines.cut()});
      if (of_table) batch->rows.emplace_back();
    });
    if (line->data() == batch->joined.back().data()) batch->joined.emplace_back();
  }
  return batch->parts.empty() ? nullptr : batch;
}

/// Calls `see` for each text between NUL bytes.
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

void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress, std::uint64_t before,
                           std::uint64_t in_all, const lines::Pattern* pattern) {
  constexpr std::size_t kBatches = 8;  // in memory at the same time
  using Shared = std::shared_ptr<Batch>;
  common::TextLines lines(file, progress, before, in_all);
  WholeLines whole(lines, wrapping, pattern == nullptr);
  lines::Columns table;
  lines::Columns* const columns = pattern == nullptr ? &table : nullptr;
  HeaderSteps headers;
  EpochSteps epochs;
  std::size_t parts = 16;  // per batch; first few, to detect the kind of a file fast
  std::atomic<bool> goes_on = true;
  const auto next = [&](tbb::flow_control& flow) {
    parts = std::min<std::size_t>(128, 2 * parts);
    auto batch = goes_on ? next_batch(lines, whole, columns, parts) : nullptr;
    if (!batch) flow.stop();
    return batch;
  };
  const auto read = [pattern](const Shared& batch) {
    LineReader reader(pattern);
    for (ReadPart& part : batch->parts) part.read(reader);
    return batch;
  };
  const auto see_all = [&](const Shared& batch) {
    for (ReadPart& part : batch->parts) {
      for (ConsoleLine& line : part.lines) {
        headers.to_steps(line);
        epochs.to_steps(line);
        goes_on = goes_on && see(line, part.number, part.cut);
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

}  // namespace halfscope::analyzers::readers::console
