// SPDX-License-Identifier: Apache-2.0
// The kinds of logs that are understood, one row each. A kind is recognised by what is in it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/source.hpp"

namespace halfscope::readers {

/// One kind of log. To add one: a file in this folder, a row in kinds.cpp, a line in docs/logs.md,
/// a target in tests/fuzz.
struct Kind {
  std::string_view name;  ///< as a list of what is understood has it: "TensorBoard event files"
  /// Whether a folder or file is, or holds, a log of the kind: by its content. Cheap: a look at the
  /// beginning of files. Never throws.
  bool (*recognises)(const std::filesystem::path& log);
  /// As analyzers::for_each_frame.
  void (*read)(const std::filesystem::path& log, const analyzers::Selection& selection,
               const analyzers::Visitor& visit, analyzers::Notes& notes,
               const analyzers::Progress& progress);
  /// Whether its logs may have tensors. Where a folder holds several kinds, those that have none
  /// are read first: what they say of loss scales holds for the tensors of the others.
  bool has_tensors = true;
  /// Whether it may be one of several kinds in a folder.
  bool joins = true;
};

std::span<const Kind> kinds();

/// Whether a log may hold tensors value by value: a run log, ranks, files of tensors. Throws
/// nothing.
bool may_hold_whole_tensors(const std::filesystem::path& log);

/// Whether a folder has a run.json.
bool is_run_log(const std::filesystem::path& log);

/// Reads a file or folder by the kind it is of, or by several: then all are one timeline. Throws
/// log::BadInput, with a list of what is understood where it is of none.
void read_any(const std::filesystem::path& log, const analyzers::Selection& selection,
              const analyzers::Visitor& visit, analyzers::Notes& notes,
              const analyzers::Progress& progress);

/// "TensorBoard event files, Weights & Biases histories, ... or ...".
std::string names_of_kinds();

/// The first bytes of a regular file, at most `most`; empty where it cannot be read.
std::string beginning_of(const std::filesystem::path& file, std::size_t most);

/// The regular files of a folder that are not hidden, by name; the file itself where it is one.
/// Empty where neither can be read.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& log);

}  // namespace halfscope::readers
