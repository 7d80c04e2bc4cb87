// SPDX-License-Identifier: Apache-2.0
// The kinds of logs that are understood, one row each. A kind is recognised by what is in it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::readers {

/// One kind of log. To add one: a file in a folder beside this one, its name in
/// common/kind_names.hpp, a row in kinds.cpp, a line in docs/logs.md, a target in tests/fuzz.
struct Kind {
  /// Whether a folder or file is, or holds, a log of the kind: by its content. Cheap: a look at the
  /// beginning of files. Never throws.
  common::Recognises* recognises;
  /// As for_each_frame.
  common::Reads* read;
  /// As for_each_whole_step_of_ranks; null where its logs hold no tensors value by value.
  void (*read_whole)(const log::OpenPath& log, const frames::Selection& selection,
                     const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                     const frames::Progress& progress) = nullptr;
  /// Whether its logs may have tensors. Where a folder holds several kinds, those that have none
  /// are read first: what they say of loss scales holds for the tensors of the others.
  bool has_tensors = true;
  /// Whether it may be one of several kinds in a folder.
  bool joins = true;
  /// Whether its logs may tell of steps, of what ran or of magnitudes: all but tensor files.
  bool has_scalars = true;
  /// The parts that a log of it is counted by; null: the whole log is one.
  frames::Parts (*parts)(const log::OpenPath& log, const frames::Selection& selection) = nullptr;
};

std::span<const Kind> kinds();
/// "console logs of ..."
std::string name_of(const Kind& kind);

/// Log::kinds() of one that nothing is known of yet. by_lines: --lines says that it is a console
/// log; a record stays one.
std::vector<const Kind*> kinds_of(const log::OpenPath& log, bool by_lines = false);

/// Whether a log that is of some kind may tell of more than tensors.
bool may_have_scalars(const Log& log);

/// Calls `visit.frame` for every selected frame of one log, of whatever kind, in the log's order,
/// and `visit.peak` for the selected steps' peaks unless tensors are selected by name. A folder of
/// several kinds is one timeline. Holds one table at a time of a run log, a file's or a step's of
/// tensor files, and all of logs of several ranks, whose tables are added first. Throws
/// log::BadInput, with a list of what is understood where it is of none.
void for_each_frame(const Log& log, const frames::Selection& selection,
                    const frames::Visitor& visit, frames::Notes& notes,
                    const frames::Progress& progress = {});

/// A log's path, and what it is called: a record's logs have the names that they were counted by.
struct NamedLog {
  std::filesystem::path path;
  std::string name;
};
/// The logs at these paths: several in a record of several.
std::vector<NamedLog> logs_at(const Logs& opened, const std::vector<std::filesystem::path>& paths);

/// The parts that a log is counted by: at least one. They keep what they need of it. Throws
/// log::BadInput where nothing is understood.
frames::Parts parts_of(const Log& log, const frames::Selection& selection);

/// What a record has counted of its log's whole tensors; of other logs nothing.
void for_each_whole_count(const Log& log, const frames::Selection& selection,
                          const frames::WholeCountsVisitor& visit);

/// Throws log::BadInput of a record, for questions that need the tensors themselves.
void require_tensors(const Log& log);

/// Those that are the ranks of a run; empty where some are missing, so that no sum over them is
/// known.
frames::Parts ranks_of(const Log& log, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers
