// SPDX-License-Identifier: Apache-2.0
// Facts of transformers/trainer_callback.py and trainer.py: TrainerState is written with sorted
// keys, "global_step" before "log_history". An entry of the history is what was logged at "step",
// the number of optimizer steps so far, skipped ones included: {"loss", "grad_norm",
// "learning_rate", "epoch", "step"}, {"eval_loss", .., "step"}, and at the end of training a
// summary with "train_runtime", whose "train_loss" is a mean of all. Each checkpoint has the
// history of its run from the beginning. With logging_nan_inf_filter, the default, a step's loss
// that is NaN or infinite is left out of the mean that is logged: where each was, that is 0.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzers/readers/common/filtered_losses.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/one_run.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"
#include "analyzers/readers/wandb/json_rows.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr wandb::RowLayout kHistory{"step", "log_history", "global_step"};
constexpr int kStateLevels = 1;  // output_dir/checkpoint-N/trainer_state.json
constexpr std::size_t kLookedAt = std::size_t{1} << 14;
constexpr std::size_t kHead = std::size_t{1} << 20;  // holds the first entry

bool is_state_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return false;
  return text.find("\"log_history\"") != std::string::npos &&
         text.find("\"global_step\"") != std::string::npos;
}

/// A file by what begins it: states of one run begin with the same entry.
struct State {
  fs::path path;
  double step = -1;   ///< it has come to
  std::string first;  ///< the first entry that has a step; empty if there is none
};

State state_of(const log::OpenPath& file) {
  State state{file.path, -1, ""};
  wandb::read_json_rows(log::read_text(file, kHead), kHistory, [&](wandb::JsonRow&& entry) {
    state.step = entry.around_step;
    if (!entry.step) return true;
    for (const auto& [name, value] : entry.scalars) {
      state.first += fmt::format("{} {}, ", printable(name), value);
    }
    return false;
  });
  return state;
}

/// The state that has come furthest holds the history of the others of its run.
State furthest(const log::OpenPath& log, bool joined, frames::Notes& notes) {
  std::vector<State> states;
  for (const fs::path& file : common::files_below(log, kStateLevels, is_state_file)) {
    states.push_back(state_of(log.at(file)));
  }
  if (states.empty()) {
    throw log::BadInput(printable(log.path.string()) +
                        ": holds no trainer_state.json; expected one with log_history");
  }
  const State last = *std::ranges::max_element(states, {}, &State::step);
  const auto other = [&](const State& state) {
    return !state.first.empty() && !last.first.empty() && state.first != last.first;
  };
  if (!joined && std::ranges::any_of(states, other)) {
    std::vector<fs::path> files;
    for (const State& state : states) files.push_back(state.path);
    common::refuse_several(log.path, "trainer states that begin differently", files);
  }
  if (states.size() > 1) {
    notes.add(fmt::format("{}: holds {} trainer states; '{}' has come furthest and is used",
                          printable(log.path.string()), states.size(),
                          printable(last.path.lexically_relative(log.path).string())));
  }
  return last;
}

}  // namespace

bool is_trainer_state(const log::OpenPath& log) {
  return common::any_file_below(log, kStateLevels, is_state_file);
}

void read_trainer_state(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress) {
  const State state = furthest(log, selection.joined != nullptr, notes);
  lines::ScalarLog found(log, {state.path}, selection, visit, notes, progress);
  common::FilteredLosses filtered;
  std::uint64_t without_step = 0;
  const auto take = [&](wandb::JsonRow&& entry) {
    if (!entry.step) ++without_step;
    if (!entry.step || entry.scalar("train_runtime")) return true;
    std::optional<double> loss = entry.scalar("loss");
    filtered.take(*entry.step, loss, entry.scalar("grad_norm"));
    for (const auto& [name, value] : entry.scalars) {
      found.add(found.series(name), *entry.step, name == "loss" ? *loss : value);
    }
    return true;
  };
  found.read_whole(state.path, [&](std::string_view text) {
    return wandb::read_json_rows(text, kHistory, take);
  });
  const std::string name = printable(state.path.string());
  if (without_step > 0) {
    notes.add(
        fmt::format("{}: {} entries of log_history have no whole number as their step and are "
                    "skipped",
                    name, without_step));
  }
  const std::string zeros = filtered.text("step");
  if (!zeros.empty()) notes.add(name + ": " + zeros);
  found.tell_scalars();
  found.finish({.name = "Hugging Face trainer state",
                .gaps = {frames::Gap::tensors},
                .tool = frames::Tool::transformers});
}

}  // namespace halfscope::analyzers::readers::metrics
