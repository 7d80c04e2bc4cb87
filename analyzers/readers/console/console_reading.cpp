// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_reading.hpp"

#include <tbb/parallel_pipeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_epochs.hpp"
#include "analyzers/readers/console/console_rows.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/lines/blocks.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

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
  WholeLines(common::TextLines& lines, const Wrapping& wrapping, bool blocks)
      : lines_(lines), wrapping_(wrapping), blocks_(blocks) {}

  /// Of several rows: put together in `joined`.
  std::optional<std::string_view> next(std::string& joined, std::vector<Fault>& faults) {
    const auto row = lines_.next();
    doubtful_ = false;
    if (!row) return row;
    number_ = lines_.number();
    if (row->find('\0') != std::string_view::npos) faults.push_back({&kNul, number_});
    if (!goes_on(*row)) {
      if (!blocks_) return row;
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
  bool blocks_;  // of several lines are joined
  std::uint64_t number_ = 0;
  bool doubtful_ = false;
};

/// Whether messages without a blank between them stand within one another: their numbers are then
/// of neither, so that they are not the same and no power of two, or one scale falls to two others.
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

/// A part of a line, and what it says.
struct ReadPart {
  std::string_view text = {};
  std::uint64_t number = 0;
  bool cut = false, doubtful = false;
  std::string plain = {};  ///< the text without colours, where it had some
  std::vector<ConsoleLine> lines = {};

  void read(const lines::Pattern* pattern) {
    const std::string_view shown = without_colours(text, plain);
    lines.push_back(console_line(shown, pattern));
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
      lines.push_back(console_line(message, pattern));
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
                           std::uint64_t in_all, common::Contradictions* faults,
                           const lines::Pattern* pattern) {
  constexpr std::size_t kBatches = 8;  // in memory
  using Shared = std::shared_ptr<Batch>;
  common::TextLines lines(file, progress, before, in_all);
  WholeLines whole(lines, wrapping, pattern == nullptr);
  EpochSteps epochs;
  const auto next = [&](tbb::flow_control& flow) {
    auto batch = next_batch(lines, whole);
    if (!batch) flow.stop();
    return batch;
  };
  const auto read = [pattern](const Shared& batch) {
    for (ReadPart& part : batch->parts) part.read(pattern);
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

}  // namespace halfscope::analyzers::readers::console
