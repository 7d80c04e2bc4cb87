// SPDX-License-Identifier: Apache-2.0
// Facts of lightning/pytorch/loggers/csv_logs.py and fabric/loggers/csv_logs.py: metrics.csv has a
// column for each metric, "step" and "epoch" among them, a row for each time that something was
// logged, and empty cells for what was not; several rows may be of one step. The table is written
// anew as a whole. What W&B exports of a chart has the columns "Step" and "RUN - METRIC".
//
// Facts of deepspeed/monitor/csv_monitor.py and deepspeed/runtime/engine.py: the file of metric
// "Train/Samples/loss_scale" is Train_Samples_loss_scale.csv, its header "step,loss_scale", or that
// of the file without ".csv", written again where a run starts again. What these call a step is the
// number of samples so far; a row is written after every step, so that its loss scale is the one of
// the next step, and of the training loss before the step is counted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analyzers/readers/common/csv_cells.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/one_run.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;
using lines::Meaning;
using lines::ScalarLog;
using lines::Series;

constexpr int kTableLevels = 1;  // lightning_logs/version_0/metrics.csv; a folder for each job
constexpr std::size_t kLongestHeader = std::size_t{1} << 16;
constexpr std::size_t kLongestRow = std::size_t{1} << 20;

/// The first line of a table.
struct Header {
  std::vector<std::string> names;
  std::optional<std::size_t> step;  ///< the column of steps: that of the lowest step_rank()

  explicit Header(std::string_view line) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    std::vector<std::string_view> cells;
    common::split_cells(line, cells);
    names.assign(cells.begin(), cells.end());
    std::optional<int> best;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto rank = lines::step_rank(names[i]);
      if (!rank || (best && *best <= *rank)) continue;
      best = rank;
      step = i;
    }
  }
};

/// Whose table a file is, by its beginning.
enum class TableOf { none, any, deepspeed };

/// DeepSpeed's monitor writes "step,NAME", and rows of two numbers. msprobe's tables have a reader
/// of their own.
TableOf table_of(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLongestHeader);
  const std::size_t end = text.find_first_of("\r\n");
  if (end == std::string::npos || text.find('\0') < end) return TableOf::none;
  const Header header(text.substr(0, end));
  if (!header.step || header.names.size() < 2 || header.names.front() == "vpp_stage") {
    return TableOf::none;
  }
  if (header.names.size() == 2 && header.names.front() == "step") {
    const std::size_t row = std::min(text.find_first_not_of("\r\n", end), text.size());
    const std::vector<std::string> cells =
        Header(text.substr(row, text.find_first_of("\r\n", row) - row)).names;
    const bool numbers =
        cells.size() == 2 && lines::step_in(cells[0]) && common::number_in(cells[1]);
    return numbers || row == text.size() ? TableOf::deepspeed : TableOf::none;
  }
  const bool known = std::ranges::any_of(
      header.names, [](const std::string& name) { return lines::meaning_of_tag(name).known(); });
  return known ? TableOf::any : TableOf::none;
}

bool is_metrics_file(const log::OpenPath& file) { return table_of(file) == TableOf::any; }
bool is_monitor_file(const log::OpenPath& file) { return table_of(file) == TableOf::deepspeed; }

/// Train_Samples_loss_scale of Train_Samples_loss_scale_0.
std::string_view without_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered = last + 1 < name.size() && last > 0 && name[last] == '_';
  return numbered ? name.substr(0, last) : name;
}

/// Reads the lines of one table.
class Table {
 public:
  /// stem: of a file of DeepSpeed's, whose only series has this tag; else empty, and the columns'
  /// names are the tags.
  explicit Table(ScalarLog& log, std::string stem = {}) : log_(log), stem_(std::move(stem)) {}

  /// The header is the first line; if it comes again, a run was started again. Returns what is
  /// wrong with a line; an empty text if nothing is.
  std::string take(std::string_view line) {
    if (line.size() > kLongestRow) return "is longer than 1 MiB";
    if (!header_) return take_header(line);
    common::split_cells(line, cells_);
    const std::size_t at = header_->step.value_or(cells_.size());
    if (at >= cells_.size()) return "has too few cells";
    const auto step = lines::step_in(cells_[at]);
    if (!step && cells_[at] == header_->names[at]) return take_header(line);
    if (!step) return "its step is not a whole number";
    std::string wrong;
    for (std::size_t i = 0; i < std::min(cells_.size(), columns_.size()); ++i) {
      if (i == at || cells_[i].empty()) continue;
      if (const auto value = common::number_in(cells_[i])) {
        ScalarLog::add(*columns_[i], *step, *value);
      } else if (columns_[i]->named.known()) {
        wrong = "a cell is not a number";
      }
    }
    return wrong;
  }

 private:
  std::string take_header(std::string_view line) {
    header_.emplace(line);
    columns_.assign(header_->names.size(), nullptr);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i == header_->step) continue;
      const std::string& name = header_->names[i];
      const lines::Named named = lines::meaning_of_tag(stem_.empty() ? name : without_number(name));
      columns_[i] = stem_.empty() ? &log_.series(name) : &log_.series(stem_, named, name);
    }
    return "";
  }

  ScalarLog& log_;
  std::string stem_;
  std::optional<Header> header_;
  std::vector<Series*> columns_;
  std::vector<std::string_view> cells_;
};

/// Reads tables that are of one run. of_deepspeed: a series a file, which has its name.
void read_tables(const std::vector<fs::path>& files, bool of_deepspeed, ScalarLog& found) {
  for (const fs::path& file : files) {
    Table table(found, of_deepspeed ? file.stem().string() : "");
    found.read_lines(file, [&](std::string_view line, std::uint64_t) { return table.take(line); });
  }
}

bool counts_samples(const Series& series) {
  return (series.tag + ' ' + series.alias).find("_Samples_") != std::string::npos;
}

/// How many samples a step has: what lies between rows, where all rows are multiples of that.
std::optional<std::int64_t> samples_a_step(std::deque<Series>& all) {
  std::int64_t least = 0, divisor = 0;
  for (Series& series : all) {
    if (!counts_samples(series)) continue;
    std::optional<std::int64_t> before;
    series.values.for_each([&](std::int64_t at, double) {
      if (before) least = least == 0 ? at - *before : std::min(least, at - *before);
      divisor = std::gcd(divisor, at);
      before = at;
    });
  }
  return least > 0 && divisor % least == 0 ? std::optional(least) : std::nullopt;
}

/// What changes of the scale say: dynamic scales fall where gradients overflow and nowhere else,
/// and grow where they do not.
void tell_changes(Series& scales, common::Timeline& timeline) {
  std::optional<std::pair<std::int64_t, double>> before;
  scales.values.for_each([&](std::int64_t step, double scale) {
    const auto last = std::exchange(before, std::pair(step, scale));
    if (!last || last->second == scale) return;
    const auto [since, from] = *last;
    const auto steps = static_cast<std::uint64_t>(step - since);
    const bool fell = scale < from;
    const double halvings = fell ? std::ceil(std::log2(from / scale)) : 0;
    if (!(halvings <= static_cast<double>(steps))) return;  // another scaler's: started again
    if (steps == 1) {
      timeline.found_inf(since, fell);
    } else if (fell) {
      const Interval count(static_cast<std::uint64_t>(halvings), steps);
      timeline.skipped({since, step - 1, count, from, scale});
    }
  });
}

/// Turns numbers of samples into steps: the nth step is n, as DeepSpeed's own "step=n" lines have
/// it. samples: of a step, where it is known. Returns the last step that a row stands behind.
std::int64_t to_steps(Series& series, std::optional<std::int64_t> samples,
                      common::Timeline& timeline) {
  const bool scale = series.named.meaning == Meaning::loss_scale;
  const bool from_zero =
      samples && series.named.meaning == Meaning::loss && series.values.around(0).second->step == 0;
  common::StepMap<double> by_step;
  std::int64_t last = 0;
  series.values.for_each([&](std::int64_t at, double value) {
    const std::int64_t step = at / samples.value_or(1) + (scale || from_zero ? 1 : 0);
    if (scale && !common::can_be_scale(value)) return timeline.loss_scale(step, value);  // notes it
    last = step - (scale ? 1 : 0);
    by_step[step] = value;
  });
  if (scale && !by_step.empty()) {  // the last row's is of a step that perhaps never ran
    const auto [before, end] = by_step.around(by_step.back().step);
    if (before != nullptr && before->value == end->value) by_step.erase_from(end->step);
  }
  series.values = std::move(by_step);
  return last;
}

/// Gives all series their steps; notes how, and sets the last step.
void find_steps(ScalarLog& found, const std::string& shown, frames::LogKind& kind,
                frames::Notes& notes) {
  const auto samples = samples_a_step(found.all());
  bool any_samples = false;
  for (Series& series : found.all()) {
    if (series.values.empty()) continue;
    const bool counts = counts_samples(series);
    const std::int64_t last =
        counts ? to_steps(series, samples, found.timeline()) : series.values.back().step;
    kind.last_step = std::max(kind.last_step, std::optional(last));
    any_samples |= counts;
  }
  if (any_samples) {
    notes.add(samples
                  ? fmt::format("{}: counts samples, {} per step: row n is step n", shown, *samples)
                  : fmt::format("{}: counts samples, with different distances between rows: the "
                                "steps shown are numbers of samples",
                                shown));
    if (!samples) kind.gaps.push_back(frames::Gap::steps);
  }
}

}  // namespace

bool is_metrics_csv(const log::OpenPath& log) {
  return common::any_file_below(log, kTableLevels, is_metrics_file);
}

void read_metrics_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress) {
  const auto files = common::files_below(log, kTableLevels, is_metrics_file);
  if (files.size() > 1 && !selection.joined) {
    common::refuse_several(log.path, "CSV files of metrics by step", files);
  }
  ScalarLog found(log, files, selection, visit, notes, progress);
  read_tables(files, false, found);
  found.tell_scalars();
  found.finish({"CSV metrics", {frames::Gap::tensors}});
}

bool is_deepspeed_csv(const log::OpenPath& log) {
  return common::any_file_below(log, kTableLevels, is_monitor_file);
}

void read_deepspeed_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress) {
  const std::vector<fs::path> files = common::files_below(log, kTableLevels, is_monitor_file);
  std::set<fs::path> jobs;
  for (const fs::path& file : files) jobs.insert(file.parent_path());
  if (jobs.size() > 1 && !selection.joined) {
    common::refuse_several(log.path, "folders of DeepSpeed's CSV metrics",
                           {jobs.begin(), jobs.end()});
  }
  ScalarLog found(log, files, selection, visit, notes, progress);
  read_tables(files, true, found);
  frames::LogKind kind{"DeepSpeed CSV metrics", {frames::Gap::tensors}};
  kind.skips_at_least = true;
  kind.tool = frames::Tool::deepspeed;
  find_steps(found, log::printable(log.path.string()), kind, notes);
  const auto used = found.used();
  const auto scales = used.find(Meaning::loss_scale);
  if (scales != used.end() && counts_samples(*scales->second)) {
    tell_changes(*scales->second, found.timeline());
  }
  found.tell_scalars();
  found.finish(std::move(kind));
}

}  // namespace halfscope::analyzers::readers::metrics
