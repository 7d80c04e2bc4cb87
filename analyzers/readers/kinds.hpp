// SPDX-License-Identifier: Apache-2.0
// The kinds of logs that Halfscope reads. A log's kind is recognised by its content.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::readers {

/// One kind of log. A new kind needs a reader in a folder next to this file, a name in
/// common/kind_names.hpp, a row in kinds.cpp, a line in docs/logs.md and a target in tests/fuzz.
struct Kind {
  /// Returns true if a file is, or a folder is or holds, a log of this kind. Never throws.
  common::Recognises* recognises;
  /// Contract of for_each_frame().
  common::Reads* read;
  /// Contract of for_each_whole_step_of_ranks(). Null if such logs never hold whole tensors.
  void (*read_whole)(const log::OpenPath& log, const frames::Selection& selection,
                     const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                     const frames::Progress& progress) = nullptr;
  /// True if its logs may hold tensors. In a folder with several kinds of logs, kinds without
  /// tensors are read first, because their loss scales apply to the tensors of the other kinds.
  bool has_tensors = true;
  /// True if a folder may hold logs of this kind together with logs of other kinds.
  bool joins = true;
  /// True if its logs may hold scalars of steps. False only for tensor files.
  bool has_scalars = true;
  /// Returns the parts that are counted separately. Null if the whole log is one part.
  frames::Parts (*parts)(const log::OpenPath& log, const frames::Selection& selection) = nullptr;
};

/// Returns all kinds, in the order in which a log is tested for them.
std::span<const Kind> kinds();
/// Returns the name of a kind in the plural, such as "console logs of ...".
std::string name_of(const Kind& kind);

/// Returns the kinds of a log. `by_lines` (--lines): every log except a record is a console log.
std::vector<const Kind*> kinds_of(const log::OpenPath& log, bool by_lines = false);

/// Returns true if one of the log's kinds has scalars (Kind::has_scalars).
bool may_have_scalars(const Log& log);

/// Calls `visit.frame` for every selected frame of a log of any kind, in the log's order, and
/// `visit.peak` for the peaks of selected steps unless tensors are selected by name. A folder with
/// several kinds of logs is read as one timeline. Memory: one histogram for a run log, those of one
/// file or step for tensor files, all for a run of several ranks, which are added first. Throws
/// log::BadInput, with the list of known kinds if the log is of none.
void for_each_frame(const Log& log, const frames::Selection& selection,
                    const frames::Visitor& visit, frames::Notes& notes,
                    const frames::Progress& progress = {});

/// A log's path, and its name in answers. A log in a record keeps the name it was counted with.
struct NamedLog {
  std::filesystem::path path;
  std::string name;
};
/// Returns the logs at these paths. The path of a record stands for all logs in it.
std::vector<NamedLog> logs_at(const Logs& opened, const std::vector<std::filesystem::path>& paths);

/// Returns the parts of a log that are counted separately, at least one. They stay valid without
/// `log`. Throws log::BadInput if the log is of no known kind.
frames::Parts parts_of(const Log& log, const frames::Selection& selection);

/// Calls `visit` for the counts of whole tensors that a record holds. Does nothing for other logs.
void for_each_whole_count(const Log& log, const frames::Selection& selection,
                          const frames::WholeCountsVisitor& visit);

/// Throws log::BadInput if the log is of no known kind, or a record. For analyses that need the
/// tensors themselves.
void require_tensors(const Log& log);

/// Returns the parts of a log that are the ranks of a run. Empty if the log has no ranks, or if
/// some ranks are missing, because sums over ranks are then unknown.
frames::Parts ranks_of(const Log& log, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers
