// SPDX-License-Identifier: Apache-2.0
// Logs that are open: the kind of each is decided once and its files are opened once, however many
// passes read it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

struct Kind;

/// One log. Copies are of the same one; for one thread at a time.
class Log {
 public:
  /// Opens nothing yet. A path alone stands for a log that is read once.
  Log(const std::filesystem::path& path);
  Log(const log::OpenPath& path);

  const std::filesystem::path& path() const { return opened().path; }
  const log::OpenPath& opened() const;
  /// What is to be said of the place where it was found; mostly nothing.
  const std::string& note() const;
  /// Which kinds it is of, in the order of the table: several where they lie in one folder; none
  /// where nothing is understood. Looked for when it is asked first.
  std::span<const Kind* const> kinds() const;

 private:
  struct State;
  friend class Logs;
  std::shared_ptr<State> state_;
};

/// The logs of one answer, each opened when it is asked for first, and kept. Copies share them.
class Logs {
 public:
  Logs();
  /// With --lines every log but a record is a console log. These throw frames::BadOption if it is
  /// no pattern.
  explicit Logs(const frames::Selection& selection);
  Logs(const log::OpenFiles& files, const frames::Selection& selection);
  /// Where a folder is no log and has one in a folder below, that one.
  const Log& at(const std::filesystem::path& log) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace halfscope::analyzers::readers
