// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/logs.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "analyzers/readers/input/open_input.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/lines/pattern.hpp"
#include "analyzers/readers/logs_below.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::readers {

struct Log::State {
  log::OpenPath path;
  bool by_lines = false;  ///< --lines
  std::optional<std::vector<const Kind*>> kinds = {};
  std::string note = {};
};

Log::Log(const std::filesystem::path& path) : Log(log::OpenPath(path, input::open_files())) {}

Log::Log(const log::OpenPath& path) : state_(std::make_shared<State>(State{path})) {}

const log::OpenPath& Log::opened() const { return state_->path; }

const std::string& Log::note() const { return state_->note; }

std::span<const Kind* const> Log::kinds() const {
  if (!state_->kinds) state_->kinds = kinds_of(state_->path, state_->by_lines);
  return *state_->kinds;
}

namespace {

/// Returns true if a folder has the layout of a run log but files are missing.
bool is_broken_run_log(const std::filesystem::path& log) {
  try {
    log::RunLog::is_one(log);
    return false;
  } catch (const log::BadInput&) {
    return true;
  }
}

}  // namespace

struct Logs::State {
  log::OpenFiles files;  // shared by all logs: a file in two logs is opened once
  bool by_lines;
  std::map<std::filesystem::path, Log> logs;
};

Logs::Logs() : Logs(frames::Selection()) {}

Logs::Logs(const frames::Selection& selection) : Logs(input::open_files(), selection) {}

Logs::Logs(const log::OpenFiles& files, const frames::Selection& selection)
    : state_(std::make_shared<State>(State{files, selection.lines.has_value(), {}})) {
  if (selection.lines) static_cast<void>(lines::Pattern(*selection.lines));
}

const Log& Logs::at(const std::filesystem::path& log) const {
  const auto known = state_->logs.find(log);
  if (known != state_->logs.end()) return known->second;
  Log found(log::OpenPath(log, state_->files));
  found.state_->by_lines = state_->by_lines;
  std::error_code unreadable;
  if (std::filesystem::is_directory(log, unreadable) && found.kinds().empty() &&
      !is_broken_run_log(log)) {
    const LogsBelow below = logs_below({log, state_->files});
    if (below.all && below.logs.size() == 1) {
      const LogsBelow::Found& one = below.logs.front();
      found = Log(log::OpenPath(one.path, state_->files));
      found.state_->note =
          fmt::format("{}: is no log itself; the one log in it is read, {} ({})",
                      log::printable(log.string()), log::printable(one.path.string()), one.is);
    }
  }
  return state_->logs.emplace(log, std::move(found)).first->second;
}

}  // namespace halfscope::analyzers::readers
