// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/options/parser.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/run_log.hpp"
#include "sim/backend/operation_differences.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::cli::simulate {
namespace {

namespace fs = std::filesystem;

/// Deletes the run log in a folder, and nothing else. The manifest is deleted last, so that an
/// interrupted deletion can still be recognised as a run.
void remove_run(const fs::path& folder) {
  for (const fs::path& rank : log::rank_folders(folder)) {
    remove_run(rank);
    std::error_code none;
    fs::remove(rank, none);  // succeeds only if it is empty
  }
  const auto remove = [](const fs::path& path) {
    std::error_code error;
    fs::remove(path, error);
    if (!error) return;
    throw log::BadInput(fmt::format("{}: cannot be deleted ({}); choose another folder",
                                    log::printable(path.string()), error.message()));
  };
  for (const char* const part : {"tensors", "checkpoint"}) {
    std::error_code none;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder / part, none)) {
      const std::string name = entry.path().filename().string();
      if (name.find("step-") != std::string::npos) files.push_back(entry.path());
    }
    for (const fs::path& file : files) remove(file);
    fs::remove(folder / part, none);  // succeeds only if it is empty
  }
  std::vector<fs::path> events;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find("tfevents") != std::string::npos) events.push_back(entry.path());
  }
  for (const fs::path& file : events) remove(file);
  remove(folder / sim::training::kTrueErrorFile);
  remove(folder / sim::backend::kOperationsFile);
  remove(folder / "run.json");
}

bool holds_run(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "run.json", none) ||
         std::ranges::any_of(log::rank_folders(folder), holds_run);
}

}  // namespace

void make_room(const std::string& out, bool force, const sim::training::Settings& settings) {
  const fs::path folder(out);
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) {
    throw options::BadUsage(fmt::format("simulate: --out {} is a file; give a folder for the run",
                                        log::printable(out)));
  }
  if (fs::is_empty(folder, error)) return;
  if (!holds_run(folder)) {
    throw log::BadInput(fmt::format("{}: holds files that are not a run; choose another folder",
                                    log::printable(out)));
  }
  if (!force) {
    throw log::BadInput(
        fmt::format("{}: holds a run already; continue it with --resume, replace it with --force, "
                    "or choose another folder",
                    log::printable(out)));
  }
  sim::training::require_trainable(settings);  // else the old run would be deleted in vain
  remove_run(folder);
}

}  // namespace halfscope::cli::simulate
