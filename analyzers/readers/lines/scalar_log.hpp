// SPDX-License-Identifier: Apache-2.0
// A log of scalars, from its files to its timeline: what the readers of tables, metrics and
// histories have in common.
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
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::lines {

/// A number as a step: whole, from 0 to kLargestStep. Empty for all others.
std::optional<std::int64_t> whole_step(double value);
/// The step that is all of a text.
std::optional<std::int64_t> step_in(std::string_view text);

/// The values of one scalar. Values without a meaning are kept only if --recorded-scale names the
/// scalar.
struct Series {
  std::string tag;    ///< its name in the log
  std::string alias;  ///< another name for --recorded-scale; may be empty
  Named named;
  common::StepMap<double> values = {};  ///< of each step the last
  bool kept = false;
};

class ScalarLog {
 public:
  /// files: those that will be read, in order; `progress` reports their bytes, `passes` times.
  ScalarLog(const log::OpenPath& log, const std::vector<std::filesystem::path>& files,
            const common::TimelineSelection& selection, const frames::Visitor& visit,
            frames::Notes& notes, const frames::Progress& progress, int passes = 1);

  /// Receives a line that is not blank, and its number from 1. Returns what is wrong with it; an
  /// empty text if nothing is.
  using Take = std::function<std::string(std::string_view line, std::uint64_t number)>;
  /// Reads a file; a note reports its bad lines. Throws log::BadInput where it cannot be read.
  void read_lines(const std::filesystem::path& file, const Take& take);

  /// Hands on the text of a file, which may be larger than any line; a note reports what `take`
  /// says is wrong with it.
  void read_whole(const std::filesystem::path& file,
                  const std::function<std::string(std::string_view text)>& take);

  /// The series of a tag, which is made at the first call. It stays where it is.
  Series& series(const std::string& tag);
  Series& series(const std::string& tag, Named named, const std::string& alias);
  static void add(Series& series, std::int64_t step, double value) {
    if (series.kept) series.values[step] = value;
  }

  /// All series, in the order of their first calls.
  std::deque<Series>& all() { return series_; }
  /// The series that is used for each meaning that the log has, by the rule of meaning_of_tag().
  std::map<Meaning, Series*> used();
  common::Timeline& timeline() { return timeline_; }

  /// Tells the timeline all that is used, once, before the first tensor. A note reports the first
  /// tag that is left out for another of its meaning.
  void tell_scalars();
  /// Reports the kind, with the tag of its loss scale, and finishes the timeline.
  void finish(frames::LogKind kind);

 private:
  const log::OpenPath& log_;
  const common::TimelineSelection& selection_;
  const frames::Visitor& visit_;
  frames::Notes& notes_;
  const frames::Progress& progress_;
  std::string shown_;  ///< the log in notes: the file where there is one
  std::uint64_t bytes_before_ = 0, bytes_;
  common::Timeline timeline_;
  std::deque<Series> series_;
  std::map<std::string, Series*, std::less<>> by_tag_;
};

}  // namespace halfscope::analyzers::readers::lines
