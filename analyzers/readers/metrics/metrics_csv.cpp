// SPDX-License-Identifier: Apache-2.0
// Facts of lightning/pytorch/loggers/csv_logs.py and fabric/loggers/csv_logs.py: metrics.csv has a
// column for each metric, "step" and "epoch" among them, a row for each time that something was
// logged, and empty cells for what was not; several rows may be of one step. The table is written
// anew as a whole. What W&B exports of a chart has the columns "Step" and "RUN - METRIC".
#include "analyzers/readers/metrics/metrics_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/common/csv_cells.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/one_run.hpp"
#include "analyzers/readers/common/scalar_tags.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::metrics {

using frames::Notes;

namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr int kCsvLevels = 1;  // lightning_logs/version_0/metrics.csv
constexpr std::size_t kLongestHeader = std::size_t{1} << 16;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

/// What a column of steps may be called; the first that a header has holds.
constexpr std::string_view kSteps[] = {"step",      "global_step", "trainer/global_step",
                                       "iteration", "iter",        "num_updates",
                                       "batch",     "epoch"};

std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// The columns of a header; empty where it is none.
struct Columns {
  std::optional<std::size_t> step;
  std::vector<std::string> names;

  explicit Columns(std::string_view header) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (header.starts_with(kByteOrderMark)) header.remove_prefix(kByteOrderMark.size());
    std::vector<std::string_view> cells;
    common::split_cells(header, cells);
    std::vector<std::string> lower;
    for (const std::string_view cell : cells) {
      lower.push_back(in_lower_case(cell));
      names.emplace_back(cell);
    }
    for (const std::string_view name : kSteps) {
      const auto found = std::ranges::find(lower, name);
      if (!step && found != lower.end()) step = static_cast<std::size_t>(found - lower.begin());
    }
  }

  /// DeepSpeed's metrics ("step,NAME", a file each) and msprobe's tables have readers of their own.
  bool are_metrics() const {
    const bool of_deepspeed = names.size() == 2 && names.front() == "step";
    if (!step || of_deepspeed || names.front() == "vpp_stage") return false;
    return std::ranges::any_of(
        names, [](const std::string& name) { return common::scalar_meaning(name).has_value(); });
  }
};

bool is_metrics_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLongestHeader);
  const std::size_t end = text.find('\n');
  std::string_view header = std::string_view(text).substr(0, end);
  if (header.ends_with('\r')) header.remove_suffix(1);
  if (end == std::string::npos || header.find(',') == std::string_view::npos) return false;
  return header.find('\0') == std::string_view::npos && Columns(header).are_metrics();
}

/// Tells a timeline the rows of one table.
class Table {
 public:
  Table(Columns columns, common::Timeline& timeline)
      : columns_(std::move(columns)), tags_(timeline) {
    for (const std::string& name : columns_.names) {
      known_.push_back(common::scalar_meaning(name).has_value());
    }
  }

  /// What is wrong with a row; empty where nothing is.
  std::string_view take(std::string_view line) {
    if (line.size() > kLongestLine) return "is longer than 1 MiB";
    common::split_cells(line, cells_);
    if (*columns_.step >= cells_.size()) return "has too few cells";
    const std::string_view at = cells_[*columns_.step];
    const auto step = at.empty() ? std::nullopt : common::number_in(at);
    if (!step || !(*step >= 0 && *step < static_cast<double>(common::kLargestStep)) ||
        *step != static_cast<double>(whole(*step))) {
      return "its step is not a whole number";
    }
    std::string_view wrong;
    for (std::size_t i = 0; i < std::min(cells_.size(), columns_.names.size()); ++i) {
      if (i == columns_.step || cells_[i].empty()) continue;
      if (const auto value = common::number_in(cells_[i])) {
        tags_.take(columns_.names[i], whole(*step), *value);
      } else if (known_[i]) {
        wrong = "a cell is not a number";
      }
    }
    return wrong;
  }

  const common::ScalarTags& tags() const { return tags_; }

 private:
  static std::int64_t whole(double step) { return static_cast<std::int64_t>(step); }

  Columns columns_;
  common::ScalarTags tags_;
  std::vector<bool> known_;  // by column
  std::vector<std::string_view> cells_;
};

}  // namespace

bool is_metrics_csv(const log::OpenPath& log) {
  return common::any_file_below(log, kCsvLevels, is_metrics_file);
}

void read_metrics_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, Notes& notes,
                      const frames::Progress& progress) {
  const std::vector<fs::path> files = common::files_below(log, kCsvLevels, is_metrics_file);
  if (files.size() > 1 && !selection.joined) {
    common::refuse_several(log.path, "CSV files of metrics by step", files);
  }
  common::Timeline timeline(log.path.string(), selection, visit);
  frames::LogKind kind{"CSV metrics", {frames::Gap::tensors}};
  const std::uint64_t in_all = common::bytes_of(log, files);
  std::uint64_t before = 0;
  for (const fs::path& file : files) {
    common::TextLines lines(log.at(file), progress, before, in_all);
    common::BadLines bad;
    Table table(Columns(lines.next().value_or("")), timeline);
    while (const auto line = lines.next()) {
      const std::string_view why = line->empty() ? "" : table.take(*line);
      if (!why.empty()) bad.add(lines.number(), why);
    }
    bad.tell(printable(lines.name()), notes);
    table.tags().tell_unused(printable(lines.name()), notes);
    if (kind.scale_tag.empty()) {
      kind.scale_tag = table.tags().chosen(common::ScalarMeaning::loss_scale);
    }
    before += lines.bytes();
  }
  if (visit.kind) visit.kind(kind);
  timeline.finish(notes);
}

}  // namespace halfscope::analyzers::readers::metrics
