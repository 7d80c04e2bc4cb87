// SPDX-License-Identifier: Apache-2.0
// Facts from mlflow/store/tracking/file_store.py: mlruns/EXPERIMENT/RUN/metrics has a file for each
// metric ("train/loss" is a file in the folder "train") and a line for each value, "TIME VALUE
// STEP", perhaps with more words, the time in milliseconds since 1970. Before MLflow 1.0 there was
// no step. log_metric() without a step writes 0.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMetrics = "metrics";
constexpr int kLevelsOfNames = 3;             // "train/loss" is a folder and a file in it
constexpr int kLevelsOfRuns = 2;              // mlruns/EXPERIMENT/RUN
constexpr std::size_t kFoldersLookedAt = 64;  // examined in each folder to recognise its kind
constexpr std::size_t kAllFolders = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kYear2001 = 1'000'000'000'000;  // in milliseconds
constexpr std::int64_t kYear2286 = 10'000'000'000'000;

struct Row {
  double value = 0;
  std::int64_t step = 0;
};

std::optional<Row> row_in(std::string_view line) {
  const auto next_word = [&line] {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    return word;
  };
  const auto time = common::integer_in(next_word());
  const auto value = common::number_in(next_word());
  const std::string_view last = next_word();
  const auto step = last.empty() ? 0 : lines::step_in(last);
  if (!time || !value || !step || *time < kYear2001 || *time > kYear2286) return std::nullopt;
  return Row{*value, *step};
}

bool is_metric(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, 256);
  return row_in(std::string_view(text).substr(0, text.find_first_of("\r\n"))).has_value();
}

/// The folders called "metrics" of the runs in a folder and `levels` below it. Looks into the first
/// `most` folders of each folder.
std::vector<fs::path> metrics_below(const fs::path& folder, int levels, std::size_t most) {
  std::error_code unreadable;
  if (folder.filename() == kMetrics && fs::is_directory(folder, unreadable)) return {folder};
  if (fs::is_directory(folder / kMetrics, unreadable)) return {folder / kMetrics};
  std::vector<fs::path> found;
  if (levels == 0) return found;
  std::vector<fs::path> folders = common::folders_of(folder);
  folders.resize(std::min(folders.size(), most));
  for (const fs::path& below : folders) {
    std::ranges::move(metrics_below(below, levels - 1, most), std::back_inserter(found));
  }
  return found;
}

/// One metric: the name that it was logged by, and its file.
struct Metric {
  std::string name;
  fs::path file;
};

/// All metrics of one run, or of all runs if they are `joined`.
std::vector<Metric> metrics_of(const log::OpenPath& log, bool joined) {
  std::error_code unreadable;
  if (!fs::is_directory(log.path, unreadable)) return {{log.path.filename().string(), log.path}};
  std::vector<Metric> metrics;
  std::vector<fs::path> runs;
  for (const fs::path& folder : metrics_below(log.path, kLevelsOfRuns, kAllFolders)) {
    const auto files = common::files_below(log.at(folder), kLevelsOfNames, is_metric);
    if (!files.empty()) runs.push_back(folder.parent_path());
    for (const fs::path& file : files) {
      metrics.push_back({file.lexically_relative(folder).generic_string(), file});
    }
  }
  if (!joined) common::require_one_run(log.path, "MLflow runs", runs);
  return metrics;
}

/// Reads the rows of a metric. If all have step 0, they were logged without steps: they are
/// numbered from 0. Returns true if several rows of a known metric are numbered so.
bool read_metric(const Metric& metric, lines::ScalarLog& found) {
  std::vector<Row> rows;
  found.files().read_lines(metric.file, [&](std::string_view line, std::uint64_t) {
    const auto row = row_in(line);
    if (row) rows.push_back(*row);
    return std::string(row ? "" : "expected 'time value step', the time in milliseconds");
  });
  const bool numbered = std::ranges::all_of(
      rows, [](std::int64_t step) { return step == 0; }, &Row::step);
  lines::Series& series = found.series(metric.name);
  std::int64_t number = 0;
  for (const Row& row : rows) series.add(numbered ? number++ : row.step, row.value);
  return numbered && rows.size() > 1 && series.named.known();
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
  bool numbered = false;
  for (const Metric& metric : metrics) numbered |= read_metric(metric, found);
  if (numbered) {
    kind.gaps.push_back(frames::Gap::steps);
    notes.add(log::printable(log.path.string()) +
              ": metrics were logged without steps: their values are numbered from 0");
  }
  found.report_scalars();
  found.finish(std::move(kind));
}

}  // namespace halfscope::analyzers::readers::metrics
