// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/logs.hpp"

#include <map>
#include <optional>
#include <vector>

#include "analyzers/readers/kinds.hpp"

namespace halfscope::analyzers::readers {

struct Log::State {
  log::OpenPath path;
  std::optional<std::vector<const Kind*>> kinds = {};
};

Log::Log(const log::OpenPath& path) : state_(std::make_shared<State>(State{path})) {}

const log::OpenPath& Log::opened() const { return state_->path; }

std::span<const Kind* const> Log::kinds() const {
  if (!state_->kinds) state_->kinds = kinds_of(state_->path);
  return *state_->kinds;
}

struct Logs::State {
  log::OpenFiles files;  // of all: a file that two logs have is opened once, too
  std::map<std::filesystem::path, Log> logs;
};

Logs::Logs() : state_(std::make_shared<State>()) {}

const Log& Logs::at(const std::filesystem::path& log) const {
  return state_->logs.try_emplace(log, log::OpenPath(log, state_->files)).first->second;
}

}  // namespace halfscope::analyzers::readers
