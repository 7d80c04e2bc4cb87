// SPDX-License-Identifier: Apache-2.0
// A log of scalars, from its files to its timeline: the part that all readers of such logs share.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/common/step_map.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::lines {

/// Returns a number as a step. Empty unless it is whole and from 0 to kLargestStep.
std::optional<std::int64_t> whole_step(double value);
/// Returns the step that a whole text is; empty for other texts.
std::optional<std::int64_t> step_in(std::string_view text);

/// The values of one scalar. They are kept only if its name has a known meaning or --recorded-scale
/// names it.
struct Series {
  std::string tag;    ///< its name in the log
  std::string alias;  ///< another name that --recorded-scale may use; empty if there is none
  Named named;
  common::StepMap<double> values = {};  ///< the last value of each step
  bool kept = false;

  void add(std::int64_t step, double value) {
    if (kept) values[step] = value;
  }
};

/// Collects the scalars of a log and passes them on to its timeline.
class ScalarLog {
 public:
  /// `files` are all files that will be read through files(), each `passes` times.
  ScalarLog(const log::OpenPath& log, const std::vector<std::filesystem::path>& files,
            const common::TimelineSelection& selection, const frames::Visitor& visit,
            frames::Notes& notes, const frames::Progress& progress, int passes = 1);

  common::TextFiles& files() { return files_; }

  /// Returns the series of a tag, which is made at the first call. The reference stays valid.
  Series& series(const std::string& tag);
  Series& series(const std::string& tag, Named named, const std::string& alias);
  /// All series, in the order of their first calls.
  std::deque<Series>& all() { return series_; }
  /// The series that is used for each meaning in the log, by the rule of meaning_of_tag().
  std::map<Meaning, Series*> used();
  common::Timeline& timeline() { return timeline_; }

  /// Passes the used series on to the timeline, once, before the first tensor. A note names the
  /// first tag that is not used because another one has its meaning.
  void report_scalars();
  /// Reports the kind, with the tag of its loss scale, and finishes the timeline.
  void finish(frames::LogKind kind);

 private:
  const common::TimelineSelection& selection_;
  const frames::Visitor& visit_;
  frames::Notes& notes_;
  std::string shown_;  ///< name in notes: the path of the only file, else of the log
  common::TextFiles files_;
  common::Timeline timeline_;
  std::deque<Series> series_;
  std::map<std::string, Series*, std::less<>> by_tag_;
};

}  // namespace halfscope::analyzers::readers::lines
