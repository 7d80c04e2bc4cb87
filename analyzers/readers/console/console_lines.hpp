// SPDX-License-Identifier: Apache-2.0
// What training programs print of loss scales and skipped steps, line by line.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/lines/forms.hpp"
#include "analyzers/readers/lines/pattern.hpp"

namespace halfscope::analyzers::readers::console {

/// A step that was skipped. Scales that can be none are skipped.
struct Overflow {
  std::optional<double> attempted = {};  ///< the scale it was tried at
  std::optional<double> next = {};       ///< what the scale is from then on
  std::optional<int> rank = {};          ///< who says so
  int scaler = 0;                        ///< Apex: which of several
  /// Tells the scale of the iteration that the line before named, and is no skipped step of its
  /// own.
  bool of_named = false;
  bool confirms = false;  ///< a message just before may have told of the same step
  bool bare = false;      ///< never with a scale: others of its program may name it

  bool operator==(const Overflow&) const = default;
};

/// "Grad overflow on iteration N", from 0, printed just before the lines of its scale. Without a
/// number where lines of several processes are torn into one.
struct OverflowIteration {
  std::optional<std::int64_t> iteration;
};

/// Of an update that was applied although gradients overflowed.
struct AppliedOverflow {
  std::optional<double> next;  ///< what the scale is from then on
};

/// Batches of an epoch, which some programs count from each epoch's beginning.
struct InEpoch {
  std::optional<std::int64_t> epoch;         ///< empty: they are counted over all epochs
  std::int64_t rank = 0;                     ///< who prints it
  std::optional<std::int64_t> batches = {};  ///< of an epoch
};

/// Forms of lines whose step is an epoch, and of those below a line with a step.
inline constexpr std::size_t kEpochForm = 0, kHeaderForm = 1;

/// `steps` steps are done. `skipped` counts the skipped ones so far, or since the last such line if
/// `of_interval`. The scale of the same line is the one of the next step.
struct Periodic {
  std::int64_t steps = 0;
  bool applied = false;  ///< `steps` counts applied updates alone
  std::optional<std::int64_t> skipped = {};
  bool of_interval = false;
  std::string_view counter = "num_updates";  ///< where it counts updates: what it calls them
  std::optional<InEpoch> in_epoch = {};      ///< EpochSteps makes these steps of the run
  /// Whether the line says by itself that it is of training: more than a step and a loss.
  bool alone = true;
  std::size_t form = 0;      ///< equal for lines that call their step the same
  bool may_restart = false;  ///< counted over the run, or from the beginning of each epoch
  std::optional<std::int64_t> total = {};  ///< of "3010/5000"
};

/// The step or epoch of a line that has nothing of training beside it: "Epoch 12".
struct Header {
  std::int64_t number = 0;
  bool is_epoch = false;
  bool evaluation = false;  ///< a word for evaluations stands in the line
};

/// What a progress bar has done of how many.
struct Bar {
  std::int64_t done = 0, total = 0;
  std::string_view of;  ///< the text before it
};

/// Scalars of a line: of its step where it tells one, else of the progress bar's.
struct LineScalars {
  std::optional<double> loss, learning_rate, gradient_norm, loss_scale;
  std::optional<std::int64_t> nan_iterations;  ///< since the last such line
  std::optional<std::int64_t> step;            ///< of a field of the bar
  std::optional<double> evaluation_loss;
  std::optional<bool> found_inf;  ///< the step's gradients overflowed, and it was skipped
  /// Losses of parts: how many, how many of these are NaN or infinite, and the first such by name.
  std::uint32_t parts = 0, bad_parts = 0;
  std::string bad_part = {};

  /// Returns true if a training value is set. An evaluation's loss does not count.
  bool any() const {
    return loss || learning_rate || gradient_norm || loss_scale || nan_iterations;
  }
};

struct ConsoleLine {
  frames::Tool tool = frames::Tool::other;  ///< that prints such lines
  std::optional<Overflow> overflow;
  std::optional<OverflowIteration> iteration;
  std::optional<AppliedOverflow> applied;
  std::optional<Periodic> periodic;
  std::optional<Bar> bar;
  LineScalars scalars;
  std::optional<Header> header;
  LineScalars loose;                       ///< of a line that has no step: HeaderSteps may find one
  std::optional<std::int64_t> hysteresis;  ///< so many overflows lower the scale, this one first
  std::optional<double> odd_scale;         ///< what stands for a scale and is none, or 0
  bool torn = false;                       ///< by a line of another process
  bool at_minimum = false;  ///< the run ended since its scale cannot be lowered any more

  /// Whether it is of a console log: a progress bar alone may be any program's.
  bool any() const {
    return overflow || iteration || applied || periodic || at_minimum || scalars.any() ||
           scalars.evaluation_loss;
  }
  /// Whether such a line alone makes a text a console log: a step and a loss may be of any text.
  bool surely() const {
    const bool of_loss = (periodic && !periodic->alone) || !(periodic || scalars.any());
    return overflow || iteration || applied || at_minimum || !of_loss;
  }
};

/// What the words of a line say, whatever its numbers are.
struct LineWords {
  LineWords() = default;
  explicit LineWords(const Line& line);

  frames::Tool tool = frames::Tool::other;  ///< that prints such lines
  bool message = false;                     ///< perhaps one of a skipped step
  bool bar = false;                         ///< perhaps one of progress
  bool dictionary = false;  ///< of what a program logs at once: "{'loss': ..", "{\"grad_norm\": .."
  bool wandb = false;       ///< a row of Weights & Biases, which have a reader
  bool pipeline = false;    ///< of DeepSpeed's pipeline engine
  bool run_ends = false;    ///< of a Trainer: the mean loss of the run
  bool fairseq2 = false;
  bool batches = false;                    ///< its step counts the batches of an epoch
  std::optional<bool> of_evaluation = {};  ///< the loss is; set once the loss is found
};

/// Reads lines without colours (console_words.hpp), one after the other. It is fast where lines
/// differ in their numbers alone.
class LineReader {
 public:
  /// pattern: of --lines, may be null. A line that it matches is read by it alone; of other lines
  /// only messages are read.
  explicit LineReader(const lines::Pattern* pattern = nullptr) : pattern_(pattern) {}
  /// Returns what a line says, which is nothing for most. Its texts are parts of the line.
  ConsoleLine read(std::string_view line);

 private:
  const lines::Pattern* pattern_;
  lines::Forms forms_;
  std::array<LineWords, lines::Forms::kMost> words_;  ///< of the last forms
};
inline ConsoleLine console_line(std::string_view line) { return LineReader().read(line); }

/// The parts of a line that have a message of an overflow each, as where several processes write
/// into one log; the line itself where it has one or none.
std::vector<std::string_view> messages_in(std::string_view line);

/// How many messages of an overflow begin in a line.
std::size_t messages_begun(std::string_view line);

/// In files of their own: console_overflows.cpp and console_progress.cpp.
std::optional<Overflow> overflow_of(const Line& line);
std::optional<OverflowIteration> iteration_of(const Line& line);
std::optional<AppliedOverflow> applied_of(const Line& line);
/// The run ended since its loss scale could not be lowered any more.
bool ends_at_minimum(const Line& line);
std::optional<Bar> bar_of(std::string_view line);
/// Returns true if a line may be one of those.
bool has_message_words(const Line& line);
/// Sets the progress and the scalars that a line's pairs have: of a step, of a bar, or of values
/// between braces, as Hugging Face's Trainer prints them.
void read_pairs(std::string_view line, const std::vector<lines::Pair>& pairs, LineWords& words,
                ConsoleLine& found);
/// Sets the same by the values that a pattern names in a line.
void read_values(std::string_view line, const std::vector<lines::NamedValue>& values,
                 ConsoleLine& found);

}  // namespace halfscope::analyzers::readers::console
