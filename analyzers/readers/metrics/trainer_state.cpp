// SPDX-License-Identifier: Apache-2.0
// Facts from transformers/trainer_callback.py and trainer.py: TrainerState is written with sorted
// keys, so "global_step" comes before "log_history". An entry of the history has "step", the number
// of optimizer steps so far, skipped steps included: {"loss", "grad_norm", "learning_rate",
// "epoch", "step"} or {"eval_loss", .., "step"}. At the end of training comes a summary with
// "train_runtime"; its "train_loss" is the mean over the run. Each checkpoint has the history of
// its run from the beginning. By default (logging_nan_inf_filter) the logged mean excludes the
// losses that are NaN or infinite; if all of them are, it is 0.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"
#include "analyzers/readers/metrics/metrics.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::metrics {
namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr int kStateLevels = 1;                      // output_dir/checkpoint-N/trainer_state.json
constexpr std::size_t kHead = std::size_t{1} << 20;  // bytes that hold the first entry

bool is_state_file(const log::OpenPath& file) {
  const std::string text = common::json_beginning_of(file);
  return text.starts_with('{') && common::has_all(text, {"\"log_history\"", "\"global_step\""});
}

/// Calls `visit` for the entries of the history until it returns false. `step` is empty if the
/// entry has no whole number as its step. Returns the error of read_json().
std::string read_history(
    std::string_view text,
    const std::function<bool(const common::JsonObject& entry, std::optional<std::int64_t> step,
                             std::optional<double> global_step)>& visit) {
  const auto take = [&](std::span<const common::JsonLevel> around,
                        const common::JsonObject& object) {
    const bool is_entry =
        around.size() == 2 && around[0].key == "log_history" && around[1].is_array;
    if (!is_entry) return true;
    const auto step = object.numbers.named("step");
    return visit(object, step ? lines::whole_step(*step) : std::nullopt,
                 around[0].object.numbers.named("global_step"));
  };
  return common::read_json(text, take);
}

/// The beginning of a file. States of one run begin with the same entry.
struct State {
  fs::path path;
  double global_step = -1;  ///< -1 if the history is empty
  std::string first;        ///< the first entry that has a step; empty if there is none
};

State state_of(const log::OpenPath& file) {
  State state{file.path, -1, ""};
  read_history(log::read_text(file, kHead), [&](const auto& entry, auto step, auto global_step) {
    state.global_step = global_step.value_or(0);
    if (!step) return true;
    for (const auto& [name, value] : entry.numbers) {
      state.first += fmt::format("{} {}, ", printable(name), value);
    }
    return false;
  });
  return state;
}

/// The state with the largest global step, which holds the history of the others of its run.
State furthest(const log::OpenPath& log, bool joined, frames::Notes& notes) {
  std::vector<State> states;
  std::vector<fs::path> files = common::files_below(log, kStateLevels, is_state_file);
  for (const fs::path& file : files) states.push_back(state_of(log.at(file)));
  if (states.empty()) {
    throw log::BadInput(printable(log.path.string()) +
                        ": holds no trainer_state.json; expected one with log_history");
  }
  State last = *std::ranges::max_element(states, {}, &State::global_step);
  const auto is_other = [&](const State& state) {
    return !state.first.empty() && !last.first.empty() && state.first != last.first;
  };
  if (!joined && std::ranges::any_of(states, is_other)) {
    common::require_one_run(log.path, "trainer states that begin differently", files);
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
  const fs::path file = furthest(log, selection.joined != nullptr, notes).path;
  lines::ScalarLog found(log, {file}, selection, visit, notes, progress);
  common::FilteredLosses filtered;
  std::uint64_t without_step = 0;
  const auto take = [&](const common::JsonObject& entry, std::optional<std::int64_t> step, auto) {
    if (!step) ++without_step;
    if (!step || entry.numbers.named("train_runtime")) return true;
    std::optional<double> loss = entry.numbers.named("loss");
    filtered.take(*step, loss, entry.numbers.named("grad_norm"));
    for (const auto& [name, value] : entry.numbers) {
      found.series(name).add(*step, name == "loss" ? *loss : value);
    }
    return true;
  };
  found.files().read_whole(file, [&](std::string_view text) { return read_history(text, take); });
  const std::string shown = printable(file.string());
  if (without_step > 0) {
    notes.add(fmt::format(
        "{}: {} entries of log_history have no whole number as their step and are skipped", shown,
        without_step));
  }
  const std::string zeros = filtered.text("step");
  if (!zeros.empty()) notes.add(shown + ": " + zeros);
  found.report_scalars();
  found.finish({.name = "Hugging Face trainer state",
                .gaps = {frames::Gap::tensors},
                .tool = frames::Tool::transformers});
}

}  // namespace halfscope::analyzers::readers::metrics
