// SPDX-License-Identifier: Apache-2.0
// Facts of mlflow/store/tracking/file_store.py: mlruns/EXPERIMENT/RUN/metrics has a file for each
// metric, "train/loss" in a folder "train"; a line for each value, "TIME VALUE STEP", the time in
// milliseconds since 1970. Before MLflow 1.0 there was no step, and log_metric() without one says
// 0.
#include "analyzers/readers/metrics/mlflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  const auto step = words[2].empty() ? 0 : common::integer_in(words[2]);
  if (!time || !value || !step || *time < kYear2001 || *time > kYear2286) return std::nullopt;
  if (*step < 0 || *step > common::kLargestStep) return std::nullopt;
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

/// Tells the rows of a metric; those of one that was logged without steps by their number.
class MetricFile {
 public:
  MetricFile(const Metric& metric, common::ScalarTags& tags) : metric_(metric), tags_(tags) {}

  void read(common::TextLines& lines, common::BadLines& bad) {
    std::int64_t rows = 0;
    while (const auto line = lines.next()) {
      if (line->empty()) continue;
      if (const auto row = row_of(*line)) {
        take(*row, rows++);
      } else {
        bad.add(lines.number(), "expected 'time value step', the time in milliseconds");
      }
    }
    if (!steps_) flush();
  }
  bool counted() const { return !steps_ && held_.size() > 1; }

 private:
  static constexpr std::size_t kMostHeld = 1'000'000;

  /// Rows of step 0 wait for one of another step.
  void take(const Row& row, std::int64_t number) {
    if (steps_ || row.step != 0 || number >= static_cast<std::int64_t>(kMostHeld)) {
      if (!steps_) tell_held_at_zero();
      steps_ = true;
      tags_.take(metric_.name, row.step, row.value);
      return;
    }
    held_.push_back(row.value);
  }
  void tell_held_at_zero() {
    if (!held_.empty()) tags_.take(metric_.name, 0, held_.back());
  }
  void flush() {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      tags_.take(metric_.name, static_cast<std::int64_t>(i), held_[i]);
    }
  }

  const Metric& metric_;
  common::ScalarTags& tags_;
  std::vector<double> held_;
  bool steps_ = false;
};

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
                 const frames::Visitor& visit, Notes& notes, const frames::Progress& progress) {
  const std::vector<Metric> metrics = metrics_of(log, selection.joined != nullptr);
  std::vector<fs::path> files;
  for (const Metric& metric : metrics) files.push_back(metric.file);
  const std::uint64_t in_all = common::bytes_of(log, files);
  std::uint64_t before = 0;
  bool counted = false;
  common::Timeline timeline(log.path.string(), selection, visit);
  common::ScalarTags tags(timeline);
  for (const Metric& metric : metrics) {
    common::TextLines lines(log.at(metric.file), progress, before, in_all);
    common::BadLines bad;
    MetricFile file(metric, tags);
    file.read(lines, bad);
    counted |= file.counted() && common::scalar_meaning(metric.name);
    bad.tell(printable(lines.name()), notes);
    before += lines.bytes();
  }
  const std::string shown = printable(log.path.string());
  tags.tell_unused(shown, notes);
  if (counted) {
    notes.add(shown + ": metrics were logged without steps: their values are numbered from 0");
  }
  if (visit.kind) {
    frames::LogKind kind{"MLflow metrics", {frames::Gap::tensors}};
    kind.scale_tag = tags.chosen(common::ScalarMeaning::loss_scale);
    if (counted) kind.gaps.push_back(frames::Gap::steps);
    visit.kind(kind);
  }
  timeline.finish(notes);
}

}  // namespace halfscope::analyzers::readers::metrics
