// SPDX-License-Identifier: Apache-2.0
// Facts of mlflow/store/tracking/file_store.py: mlruns/EXPERIMENT/RUN/metrics has a file for each
// metric, "train/loss" in a folder "train"; a line for each value, "TIME VALUE STEP", the time in
// milliseconds since 1970. Before MLflow 1.0 there was no step, and log_metric() without one says
// 0.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/one_run.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMetrics = "metrics";
constexpr int kLevelsOfNames = 3;             // "train/loss" is a folder and a file in it
constexpr int kLevelsOfRuns = 2;              // mlruns/EXPERIMENT/RUN
constexpr std::size_t kFoldersLookedAt = 64;  // to tell what a folder is
constexpr std::size_t kAllFolders = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kYear2001 = 1'000'000'000'000;  // in milliseconds
constexpr std::int64_t kYear2286 = 10'000'000'000'000;

struct Row {
  double value = 0;
  std::int64_t step = 0;
};

std::optional<Row> row_of(std::string_view line) {
  std::array<std::string_view, 3> words;
  for (std::string_view& word : words) {
    const std::size_t end = std::min(line.find(' '), line.size());
    word = line.substr(0, end);
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  const auto time = common::integer_in(words[0]);
  const auto value = common::number_in(words[1]);
  const auto step = words[2].empty() ? 0 : lines::step_in(words[2]);
  if (!time || !value || !step || *time < kYear2001 || *time > kYear2286) return std::nullopt;
  return Row{*value, *step};
}

bool is_metric(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, 256);
  return row_of(std::string_view(text).substr(0, text.find_first_of("\r\n"))).has_value();
}

/// The folders of metrics in a folder and so many levels below; of the first folders of each level.
std::vector<fs::path> metrics_below(const fs::path& folder, int levels, std::size_t most_folders) {
  std::error_code unreadable;
  if (folder.filename() == kMetrics && fs::is_directory(folder, unreadable)) return {folder};
  if (fs::is_directory(folder / kMetrics, unreadable)) return {folder / kMetrics};
  std::vector<fs::path> found;
  if (levels == 0) return found;
  std::vector<fs::path> folders = common::folders_of(folder);
  folders.resize(std::min(folders.size(), most_folders));
  for (const fs::path& below : folders) {
    for (fs::path& metrics : metrics_below(below, levels - 1, most_folders)) {
      found.push_back(std::move(metrics));
    }
  }
  return found;
}

/// One metric: the name that it was logged by, and its file.
struct Metric {
  std::string name;
  fs::path file;
};

/// All metrics of one run. Refuses several, unless all that is there is of one run.
std::vector<Metric> metrics_of(const log::OpenPath& log, bool joined) {
  std::error_code unreadable;
  if (!fs::is_directory(log.path, unreadable)) {
    return {{log.path.filename().string(), log.path}};
  }
  std::vector<Metric> metrics;
  std::vector<fs::path> runs;
  for (const fs::path& folder : metrics_below(log.path, kLevelsOfRuns, kAllFolders)) {
    const auto files = common::files_below(log.at(folder), kLevelsOfNames, is_metric);
    if (!files.empty()) runs.push_back(folder.parent_path());
    for (const fs::path& file : files) {
      metrics.push_back({file.lexically_relative(folder).generic_string(), file});
    }
  }
  if (runs.size() > 1 && !joined) common::refuse_several(log.path, "MLflow runs", runs);
  return metrics;
}

/// Reads the rows of a metric. Returns whether it was logged without steps: all rows are of step 0,
/// and are numbered instead.
bool read_metric(const Metric& metric, lines::ScalarLog& found) {
  lines::Series& series = found.series(metric.name);
  std::int64_t rows = 0;
  bool steps = false;
  found.read_lines(metric.file, [&](std::string_view line, std::uint64_t) -> std::string {
    const auto row = row_of(line);
    if (!row) return "expected 'time value step', the time in milliseconds";
    if (!steps && row->step != 0) {
      steps = true;
      if (!series.values.empty()) {  // of step 0, of which the last row holds
        series.values[0] = series.values.back().value;
        series.values.erase_from(1);
      }
    }
    lines::ScalarLog::add(series, steps ? row->step : rows++, row->value);
    return "";
  });
  return !steps && rows > 1 && series.named.known();
}

}  // namespace

bool is_mlflow(const log::OpenPath& log) {
  std::error_code unreadable;
  if (fs::is_regular_file(log.path, unreadable)) return is_metric(log);
  const auto folders = metrics_below(log.path, kLevelsOfRuns, kFoldersLookedAt);
  return std::ranges::any_of(folders, [&](const fs::path& folder) {
    return common::any_file_below(log.at(folder), kLevelsOfNames, is_metric);
  });
}

void read_mlflow(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress) {
  const std::vector<Metric> metrics = metrics_of(log, selection.joined != nullptr);
  std::vector<fs::path> files;
  for (const Metric& metric : metrics) files.push_back(metric.file);
  lines::ScalarLog found(log, files, selection, visit, notes, progress);
  frames::LogKind kind{"MLflow metrics", {frames::Gap::tensors}};
  bool counted = false;
  for (const Metric& metric : metrics) counted |= read_metric(metric, found);
  if (counted) {
    kind.gaps.push_back(frames::Gap::steps);
    notes.add(log::printable(log.path.string()) +
              ": metrics were logged without steps: their values are numbered from 0");
  }
  found.tell_scalars();
  found.finish(std::move(kind));
}

}  // namespace halfscope::analyzers::readers::metrics
