// SPDX-License-Identifier: Apache-2.0
// Facts of transformers/trainer_callback.py and trainer.py: TrainerState is written with sorted
// keys, "global_step" before "log_history". An entry of the history is what was logged at "step",
// the number of optimizer steps so far, skipped ones included: {"loss", "grad_norm",
// "learning_rate", "epoch", "step"}, {"eval_loss", .., "step"}, and at the end of training a
// summary with "train_runtime", whose "train_loss" is a mean of all. Each checkpoint has the
// history of its run from the beginning. With logging_nan_inf_filter, the default, a step's loss
// that is NaN or infinite is left out of the mean that is logged: where each was, that is 0.
#include "analyzers/readers/metrics/trainer_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/filtered_losses.hpp"
#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/one_run.hpp"
#include "analyzers/readers/common/scalar_tags.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::metrics {

using frames::Notes;

namespace {

namespace fs = std::filesystem;
using log::printable;

constexpr int kStateLevels = 1;  // output_dir/checkpoint-N/trainer_state.json
constexpr std::size_t kLookedAt = std::size_t{1} << 14;
constexpr std::size_t kHead = std::size_t{1} << 20;  // holds the first entry
constexpr std::size_t kMostScalars = 4096;           // of an entry

bool is_state_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kLookedAt);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return false;
  return text.find("\"log_history\"") != std::string::npos &&
         text.find("\"global_step\"") != std::string::npos;
}

/// What was logged at once.
struct Entry {
  std::optional<std::int64_t> step;
  std::vector<std::pair<std::string, double>> scalars;

  std::optional<double> scalar(std::string_view name) const {
    const auto found = std::ranges::find(scalars, name, &std::pair<std::string, double>::first);
    return found == scalars.end() ? std::nullopt : std::optional(found->second);
  }
};

/// Hands on the entries of the history, one at a time.
class History : public common::JsonEvents {
 public:
  /// Returns whether more entries are wanted.
  using Visit = std::function<bool(const Entry&)>;
  explicit History(Visit visit) : visit_(std::move(visit)) {}

  std::optional<std::int64_t> global_step() const { return global_step_; }
  std::uint64_t without_step() const { return without_step_; }

  void start_object() override { ++depth_; }
  void end_object() override {
    if (--depth_ != kInHistory || !in_history_) return;
    const Entry entry = std::exchange(entry_, {});
    if (!entry.step) {
      ++without_step_;
    } else if (!visit_(entry)) {
      done_ = true;
    }
  }
  void start_array() override {
    if (++depth_ == kInHistory) in_history_ = key_ == "log_history";
  }
  void end_array() override {
    if (depth_-- == kInHistory) in_history_ = false;
  }
  void key(const std::string& name) override {
    if (depth_ == 1 || in_entry()) key_ = name;
  }
  void number(double value) override {
    if (depth_ == 1 && key_ == "global_step") global_step_ = whole(value);
    if (!in_entry()) return;
    if (key_ == "step") {
      entry_.step = whole(value);
    } else if (entry_.scalars.size() < kMostScalars) {
      entry_.scalars.emplace_back(key_, value);
    }
  }
  void text(const std::string& value) override {
    if (const auto found = common::number_in(value); found && in_entry()) number(*found);
  }
  bool done() const override { return done_; }

 private:
  static constexpr int kInHistory = 2;  // open: the state, its history
  bool in_entry() const { return in_history_ && depth_ == kInHistory + 1; }
  static std::optional<std::int64_t> whole(double value) {
    if (!(value >= 0 && value < 0x1p53) || value != std::trunc(value)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  }

  Visit visit_;
  std::int64_t depth_ = 0;
  bool in_history_ = false, done_ = false;
  std::string key_;
  Entry entry_;
  std::optional<std::int64_t> global_step_;
  std::uint64_t without_step_ = 0;
};

/// A file by what begins it: states of one run begin with the same entry.
struct State {
  fs::path path;
  std::int64_t step = -1;  ///< it has come to
  std::vector<std::pair<std::string, double>> first;

  bool of_run(const State& other) const {
    const auto same = [](const auto& a, const auto& b) {
      const bool both_nan = std::isnan(a.second) && std::isnan(b.second);
      return a.first == b.first && (a.second == b.second || both_nan);
    };
    return first.empty() || other.first.empty() || std::ranges::equal(first, other.first, same);
  }
};

State state_of(const log::OpenPath& file) {
  State state{file.path, -1, {}};
  History head([&](const Entry& entry) {
    state.first = entry.scalars;
    state.first.emplace_back("step", static_cast<double>(*entry.step));
    return false;
  });
  common::read_json(log::read_text(file, kHead), head);
  state.step = head.global_step().value_or(-1);
  return state;
}

/// The state that has come furthest holds the history of the others of its run.
State furthest(const log::OpenPath& log, bool joined, Notes& notes) {
  std::vector<State> states;
  for (const fs::path& file : common::files_below(log, kStateLevels, is_state_file)) {
    states.push_back(state_of(log.at(file)));
  }
  if (states.empty()) {
    throw log::BadInput(printable(log.path.string()) +
                        ": holds no trainer_state.json; expected one with log_history");
  }
  const State last = *std::ranges::max_element(states, {}, &State::step);
  const auto other = [&](const State& state) { return !state.of_run(last); };
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

/// Tells entries to a timeline.
class StateReader {
 public:
  explicit StateReader(common::Timeline& timeline) : tags_(timeline) {}

  void take(const Entry& entry) {
    if (entry.scalar("train_runtime")) return;
    std::optional<double> loss = entry.scalar("loss");
    filtered_.take(*entry.step, loss, entry.scalar("grad_norm"));
    for (const auto& [name, value] : entry.scalars) {
      tags_.take(name, *entry.step, name == "loss" ? *loss : value);
    }
  }

  void tell_notes(const std::string& name, std::uint64_t without_step, Notes& notes) const {
    if (without_step > 0) {
      notes.add(
          fmt::format("{}: {} entries of log_history have no whole number as their "
                      "step and are skipped",
                      name, without_step));
    }
    const std::string filtered = filtered_.text("step");
    if (!filtered.empty()) notes.add(name + ": " + filtered);
  }

 private:
  common::ScalarTags tags_;
  common::FilteredLosses filtered_;
};

}  // namespace

bool is_trainer_state(const log::OpenPath& log) {
  return common::any_file_below(log, kStateLevels, is_state_file);
}

void read_trainer_state(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, Notes& notes,
                        const frames::Progress& progress) {
  const State state = furthest(log, selection.joined != nullptr, notes);
  const std::string text = log::read_text(log.at(state.path));
  const std::string name = printable(state.path.string());
  common::Timeline timeline(log.path.string(), selection, visit);
  StateReader reader(timeline);
  History history([&](const Entry& entry) {
    reader.take(entry);
    return true;
  });
  const std::string why = common::read_json(text, history);
  if (!why.empty()) notes.add(name + ": " + why + "; the rest is not read");
  reader.tell_notes(name, history.without_step(), notes);
  if (progress) progress(text.size(), text.size());
  if (visit.kind) {
    visit.kind({.name = "Hugging Face trainer state",
                .gaps = {frames::Gap::tensors},
                .tool = frames::Tool::transformers});
  }
  timeline.finish(notes);
}

}  // namespace halfscope::analyzers::readers::metrics
