// SPDX-License-Identifier: Apache-2.0
// Open logs: each log's kind is found once and its files are opened once, for all passes over it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

struct Kind;

/// Handle of one log; copies refer to the same log. Not for use by two threads at once.
class Log {
 public:
  /// Opens nothing yet. A Log made from a plain path shares its open files with no other Log.
  Log(const std::filesystem::path& path);
  Log(const log::OpenPath& path);

  const std::filesystem::path& path() const { return opened().path; }
  const log::OpenPath& opened() const;
  /// A note if the log was found in a folder below the path that was named; else empty.
  const std::string& note() const;
  /// Returns the kinds of the log, in the order of readers::kinds(): several if one folder holds
  /// several, none if no kind is recognised. The first call looks at the files.
  std::span<const Kind* const> kinds() const;

 private:
  struct State;
  friend class Logs;
  std::shared_ptr<State> state_;
};

/// The logs of one answer. Each is opened at its first use and kept open. Copies share the logs.
class Logs {
 public:
  Logs();
  /// If --lines is set, every log except a record is read as a console log. Both constructors throw
  /// frames::BadOption if --lines is not a valid pattern.
  explicit Logs(const frames::Selection& selection);
  Logs(const log::OpenFiles& files, const frames::Selection& selection);
  /// Returns the log at a path. For a folder that is not a log, returns the only log below it if
  /// there is exactly one.
  const Log& at(const std::filesystem::path& log) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace halfscope::analyzers::readers
