// SPDX-License-Identifier: Apache-2.0
// Facts from lightning/pytorch/loggers/csv_logs.py and fabric/loggers/csv_logs.py: metrics.csv has
// a column for each metric, among them "step" and "epoch", and a row each time something was
// logged. Cells of other metrics are empty. Several rows may have one step. A chart exported from
// W&B has the columns "Step" and "RUN - METRIC".
//
// Facts from deepspeed/monitor/csv_monitor.py and deepspeed/runtime/engine.py: the file of metric
// "Train/Samples/loss_scale" is Train_Samples_loss_scale.csv. Its header is "step,loss_scale", or
// that of the file without ".csv", and is written again when a run starts again. The column "step"
// has the number of samples so far. A row is written after each step, so its loss scale is that of
// the next step. The row of the training loss is written before the step is counted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;
using lines::Meaning;
using lines::ScalarLog;
using lines::Series;

constexpr int kTableLevels = 1;  // lightning_logs/version_0/metrics.csv; a folder for each job
constexpr std::size_t kLongestHeader = std::size_t{1} << 16;  // bytes

/// The first line of a table.
struct Header {
  std::vector<std::string> names;
  std::optional<std::size_t> step;  ///< the column of steps: the first with the lowest step_rank()

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

/// The header of a table of metrics by step. Empty for other files; msprobe's tables have a reader
/// of their own.
std::optional<Header> header_of(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLongestHeader);
  const std::size_t end = text.find_first_of("\r\n");
  if (end == std::string::npos || text.find('\0') < end) return std::nullopt;
  Header header(text.substr(0, end));
  const bool is_table =
      header.step && header.names.size() > 1 && header.names.front() != "vpp_stage";
  return is_table ? std::optional(std::move(header)) : std::nullopt;
}

/// Returns true if a metric's name is "Train/Samples/...", as in DeepSpeed's engine, or has
/// underscores instead of slashes.
bool counts_samples(std::string_view name) {
  return name.find("_Samples_") != std::string_view::npos ||
         name.find("/Samples/") != std::string_view::npos;
}

/// Returns true if DeepSpeed wrote a table: its columns are "step" and a metric, and the metric
/// counts samples, or the file has the name "GROUP_METRIC.csv".
bool is_of_deepspeed(const Header& header, const fs::path& file) {
  if (header.names.size() != 2 || header.names.front() != "step") return false;
  const std::string& metric = header.names.back();
  return counts_samples(metric) || file.stem().string().ends_with('_' + metric);
}

bool is_monitor_file(const log::OpenPath& file) {
  const auto header = header_of(file);
  return header && is_of_deepspeed(*header, file.path);
}

bool is_metrics_file(const log::OpenPath& file) {
  const auto header = header_of(file);
  return header && !is_of_deepspeed(*header, file.path) &&
         std::ranges::any_of(header->names, [](const std::string& name) {
           return lines::meaning_of_tag(name).known();
         });
}

/// The series of the columns of a table; null for the column of steps. If `tag` is not empty, it is
/// the tag of the only series of DeepSpeed's file.
std::vector<Series*> series_of(const Header& header, const std::string& tag, ScalarLog& found) {
  std::vector<Series*> columns(header.names.size(), nullptr);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == header.step) continue;
    const std::string& name = header.names[i];
    // "Train_Samples_loss_scale_0" means the same as "Train_Samples_loss_scale".
    const std::string unnumbered = name.substr(0, name.find_last_not_of("_0123456789") + 1);
    columns[i] = tag.empty() ? &found.series(name)
                             : &found.series(tag, lines::meaning_of_tag(unnumbered), name);
  }
  return columns;
}

/// Reads a table. The first line is the header; if it comes again, a run was started again.
void read_table(const fs::path& file, const std::string& tag, ScalarLog& found) {
  std::optional<Header> header;
  std::vector<Series*> columns;
  std::vector<std::string_view> cells;
  found.files().read_lines(file, [&](std::string_view line, std::uint64_t) -> std::string {
    common::split_cells(line, cells);
    const std::size_t at = header ? header->step.value_or(cells.size()) : 0;
    if (at >= cells.size()) return "has too few cells";
    const auto step = header ? lines::step_in(cells[at]) : std::nullopt;
    if (!header || (!step && cells[at] == header->names[at])) {
      columns = series_of(header.emplace(line), tag, found);
      return "";
    }
    if (!step) return "its step is not a whole number";
    bool wrong = false;
    for (std::size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) {
      if (i == at || cells[i].empty()) continue;
      const auto value = common::number_in(cells[i]);
      if (value) columns[i]->add(*step, *value);
      wrong |= !value && columns[i]->named.known();
    }
    return wrong ? "a cell is not a number" : "";
  });
}

bool counts_samples(const Series& series) {
  return counts_samples(series.tag) || counts_samples(series.alias);
}

/// The number of samples in a step: the least difference between rows, if all rows are multiples of
/// it; else empty.
std::optional<std::int64_t> samples_per_step(std::deque<Series>& all) {
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

/// Reports the steps that a dynamic loss scale shows: it falls when gradients overflow and at no
/// other time, and it grows only when they do not.
void report_changes(Series& scales, common::Timeline& timeline) {
  std::optional<std::pair<std::int64_t, double>> before;
  scales.values.for_each([&](std::int64_t step, double scale) {
    const auto last = std::exchange(before, std::pair(step, scale));
    if (!last || last->second == scale) return;
    const auto [since, from] = *last;
    const auto steps = static_cast<std::uint64_t>(step - since);
    const bool fell = scale < from;
    const double halvings = fell ? std::ceil(std::log2(from / scale)) : 0;
    if (!(halvings <= static_cast<double>(steps))) return;  // a run that started again
    if (steps == 1) {
      timeline.found_inf(since, fell);
    } else if (fell) {
      const Interval count(static_cast<std::uint64_t>(halvings), steps);
      timeline.skipped({since, step - 1, count, from, scale});
    }
  });
}

/// Replaces numbers of samples by steps: row n is step n, as in DeepSpeed's own "step=n" lines.
/// `samples` is their number in a step; empty if unknown. Returns the last step that certainly ran.
std::int64_t number_by_steps(Series& series, std::optional<std::int64_t> samples,
                             common::Timeline& timeline) {
  const bool is_scale = series.named.meaning == Meaning::loss_scale;
  const bool from_zero =
      samples && series.named.meaning == Meaning::loss && series.values.around(0).second->step == 0;
  common::StepMap<double> by_step;
  std::int64_t last = 0;
  series.values.for_each([&](std::int64_t at, double value) {
    const std::int64_t step = at / samples.value_or(1) + (is_scale || from_zero ? 1 : 0);
    if (is_scale && !common::can_be_scale(value)) return timeline.loss_scale(step, value);
    last = step - (is_scale ? 1 : 0);
    by_step[step] = value;
  });
  if (is_scale && !by_step.empty()) {  // the step of the last row may not have run
    const auto [before, end] = by_step.around(by_step.back().step);
    if (before != nullptr && before->value == end->value) by_step.erase_from(end->step);
  }
  series.values = std::move(by_step);
  return last;
}

/// Numbers all series by steps, with a note, and sets the last step of the log.
void find_steps(ScalarLog& found, const std::string& shown, frames::LogKind& kind,
                frames::Notes& notes) {
  const auto samples = samples_per_step(found.all());
  bool any_samples = false;
  for (Series& series : found.all()) {
    if (series.values.empty()) continue;
    const bool counts = counts_samples(series);
    const std::int64_t last =
        counts ? number_by_steps(series, samples, found.timeline()) : series.values.back().step;
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
  if (!selection.joined) {
    common::require_one_run(log.path, "CSV files of metrics by step", files);
  }
  ScalarLog found(log, files, selection, visit, notes, progress);
  for (const fs::path& file : files) read_table(file, "", found);
  found.report_scalars();
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
  if (!selection.joined) {
    common::require_one_run(log.path, "folders of DeepSpeed's CSV metrics",
                            {jobs.begin(), jobs.end()});
  }
  ScalarLog found(log, files, selection, visit, notes, progress);
  for (const fs::path& file : files) read_table(file, file.stem().string(), found);
  frames::LogKind kind{"DeepSpeed CSV metrics", {frames::Gap::tensors}};
  kind.skips_at_least = true;
  kind.tool = frames::Tool::deepspeed;
  find_steps(found, log::printable(log.path.string()), kind, notes);
  const auto used = found.used();
  const auto scales = used.find(Meaning::loss_scale);
  if (scales != used.end() && counts_samples(*scales->second)) {
    report_changes(*scales->second, found.timeline());
  }
  found.report_scalars();
  found.finish(std::move(kind));
}

}  // namespace halfscope::analyzers::readers::metrics
