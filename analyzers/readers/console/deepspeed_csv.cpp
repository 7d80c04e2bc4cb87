// SPDX-License-Identifier: Apache-2.0
// Facts of deepspeed/monitor/csv_monitor.py and deepspeed/runtime/engine.py: the file of metric
// "Train/Samples/loss_scale" is Train_Samples_loss_scale.csv, its header "step,loss_scale", or that
// of the file without ".csv", written again where a run starts again. What these call a step is the
// number of samples so far; a row is written after every step, so that its loss scale is the one of
// the next step, and of the training loss before the step is counted.
#include "analyzers/readers/console/deepspeed_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/scalar_tags.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::console {

using common::ScalarMeaning;
using common::Timeline;
using frames::Notes;

namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr int kLevels = 1;  // csv_monitor's output_path holds a folder for each job
constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;

/// NAME of a header "step,NAME"; of a file with more columns nothing.
std::optional<std::string> header_name(std::string_view line) {
  constexpr std::string_view kStart = "step,";
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  if (line.empty() || line.find(',') != std::string_view::npos) return std::nullopt;
  return std::string(line);
}

struct Row {
  std::int64_t at = 0;
  double value = 0;
};

std::optional<Row> row_of(std::string_view line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto at = common::integer_in(line.substr(0, comma));
  const auto value = common::number_in(line.substr(comma + 1));
  if (!at || !value || *at < 0 || *at > kMostSamples) return std::nullopt;
  return Row{*at, *value};
}

bool is_metric_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, 512);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return false;
  std::string_view line = std::string_view(text).substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!header_name(line)) return false;
  std::string_view second = std::string_view(text).substr(end + 1);
  second = second.substr(0, second.find_first_of("\r\n"));
  return second.empty() || row_of(second).has_value();
}

constexpr std::string_view kOfSamples = "Train_Samples_";
constexpr common::Contradiction kNoCsvScale{"a loss scale is infinite, nan or negative",
                                            "such rows are skipped"};

/// Train/Samples/loss_scale of Train_Samples_loss_scale and of Train_Samples_loss_scale_0.
std::string tag_of(std::string name) {
  if (!name.starts_with(kOfSamples)) return name;
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last + 1 < name.size() && name[last] == '_') name.resize(last);
  return "Train/Samples/" + name.substr(std::min(kOfSamples.size(), name.size()));
}

/// One file: the last value of a step holds.
struct Metric {
  std::string name, file;  ///< of the header; the file's, without its extension
  bool counts_samples = false;
  std::optional<ScalarMeaning> meaning;
  std::map<std::int64_t, double> values;
};

Metric read_metric(const log::OpenPath& file, const frames::Progress& progress,
                   std::uint64_t before, std::uint64_t in_all, Notes& notes) {
  Metric metric;
  metric.file = file.path.stem().string();
  const auto says_samples = [](const std::string& text) {
    return text.find("_Samples_") != std::string::npos;
  };
  metric.counts_samples = says_samples(metric.file);
  common::TextLines lines(file, progress, before, in_all);
  common::BadLines bad;
  common::Contradictions contradictions;
  while (const auto line = lines.next()) {
    if (const auto name = header_name(*line)) {
      metric.name = *name;
      metric.meaning = common::scalar_meaning(tag_of(*name));
      metric.counts_samples |= says_samples(*name);
    } else if (const auto row = row_of(*line)) {
      const bool scale = metric.meaning == ScalarMeaning::loss_scale;
      if (scale && !common::can_be_scale(row->value)) {
        contradictions.add(kNoCsvScale, lines.number(), fmt::format("{}", row->value));
        continue;
      }
      metric.values[row->at] = row->value;
    } else if (!line->empty()) {
      bad.add(lines.number(), "expected 'step,value', two numbers");
    }
  }
  bad.tell(printable(lines.name()), notes);
  contradictions.tell(printable(lines.name()), notes);
  return metric;
}

/// How many samples a step has: what lies between rows, where all rows are multiples of that.
std::optional<std::int64_t> samples_a_step(const std::vector<Metric>& metrics) {
  std::int64_t least = 0;
  for (const Metric& m : metrics) {
    if (!m.counts_samples) continue;
    for (auto at = m.values.begin(); at != m.values.end() && std::next(at) != m.values.end();
         ++at) {
      const std::int64_t apart = std::next(at)->first - at->first;
      least = least == 0 ? apart : std::min(least, apart);
    }
  }
  if (least == 0) return std::nullopt;
  for (const Metric& m : metrics) {
    const bool all = std::all_of(m.values.begin(), m.values.end(),
                                 [least](const auto& row) { return row.first % least == 0; });
    if (m.counts_samples && !all) return std::nullopt;
  }
  return least;
}

/// Rows by step: the nth step is n, as DeepSpeed's own "step=n" lines have it.
void to_steps(Metric& metric, std::int64_t samples) {
  std::map<std::int64_t, double> by_step;
  const bool before = metric.meaning == ScalarMeaning::loss && metric.values.count(0) != 0;
  for (const auto& [at, value] : metric.values) by_step[at / samples + (before ? 1 : 0)] = value;
  metric.values = std::move(by_step);
}

/// Scales that are written after their step, each that of the next one; and what their changes say:
/// dynamic scales fall where gradients overflow and nowhere else, and grow where they do not.
void tell_scales(const Metric& metric, Timeline& timeline) {
  const auto& values = metric.values;
  for (auto at = values.begin(); at != values.end(); ++at) {
    const auto [step, scale] = *at;
    const bool last = std::next(at) == values.end();
    const auto before = at == values.begin() ? values.end() : std::prev(at);
    if (last && before != values.end() && before->second == scale) break;  // tells nothing more
    timeline.loss_scale(step + 1, scale);
    if (before == values.end() || before->second == scale) continue;
    const bool fell = scale < before->second;
    const std::uint64_t steps =
        static_cast<std::uint64_t>(step) - static_cast<std::uint64_t>(before->first);
    const double halvings = fell ? std::ceil(std::log2(before->second / scale)) : 0;
    if (!(halvings <= static_cast<double>(steps))) continue;  // another scaler's: started again
    if (steps == 1) {
      timeline.found_inf(step, fell);
    } else if (fell) {
      const Interval count(static_cast<std::uint64_t>(halvings), steps);
      timeline.skipped({before->first + 1, step, count, before->second, scale});
    }
  }
}

void tell(const Metric& metric, Timeline& timeline) {
  const bool after_step = metric.meaning == ScalarMeaning::loss_scale && metric.counts_samples;
  if (after_step) tell_scales(metric, timeline);
  for (const auto& [step, value] : metric.values) {
    const std::int64_t of = step + (after_step ? 1 : 0);
    timeline.recorded_scale(metric.name, of, value);
    timeline.recorded_scale(metric.file, of, value);
    if (!after_step && metric.meaning) {
      common::tell_scalar(timeline, *metric.meaning, step, value);
    }
  }
}

/// Says what is skipped where nothing is of use, and which metrics are there twice.
void tell_names(const std::string& shown, const std::vector<Metric>& used,
                const std::set<std::string>& left_out, Notes& notes) {
  if (used.empty() && !left_out.empty()) {
    notes.add(
        fmt::format(
            "{}: no column name means loss, learning rate or loss scale, the first is '{}'; use ",
            shown, printable(*left_out.begin())) +
        frames::Message(frames::Option::recorded_scale, "NAME") + " to name the loss scale");
  }
  std::map<ScalarMeaning, const Metric*> known;
  for (const Metric& metric : used) {
    if (!metric.meaning) continue;
    const auto [first, is_new] = known.emplace(*metric.meaning, &metric);
    if (is_new) continue;
    notes.add(
        fmt::format("{}: '{}' and '{}' mean the same; at a step that both have, the latter is used",
                    shown, printable(first->second->file), printable(metric.file)));
  }
}

void tell_steps(const std::string& shown, std::optional<std::int64_t> samples, Notes& notes) {
  notes.add(
      samples ? fmt::format("{}: counts samples, {} per step: row n is step n", shown, *samples)
              : fmt::format("{}: counts samples, with different distances between rows: the steps "
                            "shown are numbers of samples",
                            shown));
}

}  // namespace

bool is_deepspeed_csv(const log::OpenPath& log) {
  return common::any_file_below(log, kLevels, is_metric_file);
}

void read_deepspeed_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, Notes& notes,
                        const frames::Progress& progress) {
  const std::vector<fs::path> files = common::files_below(log, kLevels, is_metric_file);
  const std::uint64_t in_all = common::bytes_of(log, files);
  std::uint64_t before = 0;
  std::vector<Metric> metrics;
  std::set<std::string> left_out;
  bool any_samples = false;
  for (const fs::path& file : files) {
    Metric metric = read_metric(log.at(file), progress, before, in_all, notes);
    before += common::bytes_of(log, {file});
    const auto& tag = selection.scale_tag;
    if (!metric.meaning && tag != metric.name && tag != metric.file) {  // of no use here
      left_out.insert(metric.name);
      continue;
    }
    any_samples |= metric.counts_samples && !metric.values.empty();
    metrics.push_back(std::move(metric));
  }
  tell_names(printable(log.path.string()), metrics, left_out, notes);
  const auto samples = samples_a_step(metrics);
  Timeline timeline(log.path.string(), selection, visit);
  for (Metric& metric : metrics) {
    if (samples && metric.counts_samples) to_steps(metric, *samples);
    tell(metric, timeline);
  }
  if (any_samples) tell_steps(printable(log.path.string()), samples, notes);
  if (visit.kind) {
    frames::LogKind kind{"DeepSpeed CSV metrics", {frames::Gap::tensors}};
    kind.skips_at_least = true;
    kind.tool = frames::Tool::deepspeed;
    for (const Metric& metric : metrics) {
      if (metric.values.empty()) continue;
      kind.last_step = std::max(kind.last_step, std::optional(metric.values.rbegin()->first));
    }
    if (any_samples && !samples) kind.gaps.push_back(frames::Gap::steps);
    visit.kind(kind);
  }
  timeline.finish(notes);
}

}  // namespace halfscope::analyzers::readers::console
