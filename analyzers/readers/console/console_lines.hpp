// SPDX-License-Identifier: Apache-2.0
// Results of single lines that training programs print: loss scales, skipped steps, scalars.
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

/// A message of a skipped step. Empty scales are unknown, or were not valid.
struct Overflow {
  std::optional<double> attempted = {};  ///< loss scale of the skipped step
  std::optional<double> next = {};       ///< loss scale after the skipped step
  std::optional<int> rank = {};          ///< rank that printed the message; empty: unknown
  int scaler = 0;                        ///< index of Apex's loss scaler
  /// True if the message has the scale of the iteration in the previous line, and is no new step.
  bool of_named = false;
  bool confirms = false;  ///< may be about the same step as the previous message
  bool bare = false;      ///< never has a scale; another message of the step may have it

  bool operator==(const Overflow&) const = default;
};

/// "Grad overflow on iteration N", which is printed just before the lines with its scale.
struct OverflowIteration {
  std::optional<std::int64_t> iteration;  ///< from 0; empty: torn by lines of other processes
};

/// A message of an update that was applied although gradients overflowed.
struct AppliedOverflow {
  std::optional<double> next;  ///< loss scale after the update
};

/// The epoch of a line whose batches may be counted from each epoch's beginning.
struct InEpoch {
  std::optional<std::int64_t> epoch;         ///< empty: batches are counted over all epochs
  std::int64_t rank = 0;                     ///< rank that printed the line
  std::optional<std::int64_t> batches = {};  ///< number of batches in the epoch; empty: unknown
};

/// Values of Periodic::form for lines whose step is an epoch, and for lines below a Header.
inline constexpr std::size_t kEpochForm = 0, kHeaderForm = 1;

/// Progress in a line: `steps` steps are done. A loss scale in the line is that of the next step.
struct Periodic {
  std::int64_t steps = 0;
  bool applied = false;                      ///< `steps` counts only applied updates
  std::optional<std::int64_t> skipped = {};  ///< number of skipped steps; empty: unknown
  bool of_interval = false;  ///< `skipped` counts since the previous such line, not from the start
  std::string_view counter = "num_updates";  ///< name of a count of updates, for messages
  std::optional<InEpoch> in_epoch = {};      ///< EpochSteps converts `steps` to steps of the run
  /// True if the line alone shows that it is of training: it has more than a step and a loss.
  bool alone = true;
  std::size_t form = 0;      ///< equal for lines with the same name of the step
  bool may_restart = false;  ///< `steps` may be counted from the beginning of each epoch
  std::optional<std::int64_t> total = {};  ///< 5000 in "3010/5000"
  /// Applied updates; empty if the line has no step besides its counter of updates.
  std::optional<std::int64_t> updates = {};
};

/// A line with a step or an epoch, and no other value of training: "Epoch 12".
struct Header {
  std::int64_t number = 0;
  bool is_epoch = false;
  bool evaluation = false;  ///< the line has a word for evaluations
};

/// A progress bar: `done` of `total` steps are done.
struct Bar {
  std::int64_t done = 0, total = 0;
  std::string_view of;  ///< the text before the bar
};

/// Scalars of a line. They belong to the line's step if it has one, else to the progress bar's.
struct LineScalars {
  std::optional<double> loss, learning_rate, gradient_norm, loss_scale;
  std::optional<std::int64_t> nan_iterations;  ///< number since the previous such line
  std::optional<std::int64_t> step;            ///< from a field of the progress bar
  std::optional<double> evaluation_loss;
  std::optional<bool> found_inf;  ///< true if gradients overflowed and the step was skipped
  /// Losses of parts of the model: how many, how many are NaN or infinite, and the first of these.
  std::uint32_t parts = 0, bad_parts = 0;
  std::string bad_part = {};

  /// Returns true if a training value is set. An evaluation's loss does not count.
  bool any() const {
    return loss || learning_rate || gradient_norm || loss_scale || nan_iterations;
  }
};

/// All results of one line. A member is empty if the line has no such data.
struct ConsoleLine {
  frames::Tool tool = frames::Tool::other;  ///< program that prints such lines
  std::optional<Overflow> overflow;
  std::optional<OverflowIteration> iteration;
  std::optional<AppliedOverflow> applied;
  std::optional<Periodic> periodic;
  std::optional<Bar> bar;
  LineScalars scalars;
  std::optional<Header> header;
  LineScalars loose;                       ///< scalars without a step; HeaderSteps may find it
  std::optional<std::int64_t> hysteresis;  ///< overflows, with this one, that lower the scale
  std::optional<double> odd_scale;         ///< first printed scale that is 0 or not valid
  bool torn = false;                       ///< another process wrote into the line
  bool at_minimum = false;  ///< the run ended because its scale could not be lowered further

  /// Returns true if the line has data of training. A header or a progress bar alone has none.
  bool any() const {
    return overflow || iteration || applied || periodic || at_minimum || scalars.any() ||
           scalars.evaluation_loss;
  }
  /// Returns true if the line alone proves a console log. Any text may have a step and a loss.
  bool surely() const {
    const bool of_loss = (periodic && !periodic->alone) || !(periodic || scalars.any());
    return overflow || iteration || applied || at_minimum || !of_loss;
  }
};

/// Properties of a line that depend only on its words, so that all lines of a form share them.
struct LineWords {
  LineWords() = default;
  explicit LineWords(const Line& line);

  frames::Tool tool = frames::Tool::other;  ///< program that prints such lines
  bool message = false;                     ///< may be a message of a skipped step
  bool bar = false;                         ///< may be a progress bar
  bool dictionary = false;  ///< has a dictionary of scalars: "{'loss': ..", "{\"grad_norm\": .."
  bool wandb = false;       ///< row of Weights & Biases, which another reader reads
  bool pipeline = false;    ///< printed by DeepSpeed's pipeline engine
  bool run_ends = false;    ///< end of a Hugging Face Trainer's run, with the run's mean loss
  bool fairseq2 = false;
  bool batches = false;                    ///< has "global_batch_idx", counted over all epochs
  std::optional<bool> of_evaluation = {};  ///< the loss is an evaluation's; set by read_pairs()
};

/// Reads lines without ANSI escape sequences (without_colours()). It is fast for lines that differ
/// only in their numbers. Each thread uses its own reader.
class LineReader {
 public:
  /// pattern: the pattern of --lines, or null if there is none. If a line matches, only the values
  /// that the pattern names are read; from other lines, only messages and progress bars.
  explicit LineReader(const lines::Pattern* pattern = nullptr) : pattern_(pattern) {}
  /// Returns the results of a line, empty for most lines. Their texts are parts of `line`.
  ConsoleLine read(std::string_view line);

 private:
  const lines::Pattern* pattern_;
  lines::Forms forms_;
  std::array<LineWords, lines::Forms::kMost> words_;  ///< by Forms::place()
};
inline ConsoleLine console_line(std::string_view line) { return LineReader().read(line); }

/// Splits a line into parts with one message of an overflow each. Several processes that write into
/// one log can print such lines. Returns the whole line if it has one message or none.
std::vector<std::string_view> messages_in(std::string_view line);

/// Returns the number of messages of an overflow that begin in a line.
std::size_t messages_begun(std::string_view line);

/// Parts of LineReader::read(). Each returns empty if the line has no such data.
std::optional<Overflow> overflow_of(const Line& line);
std::optional<OverflowIteration> iteration_of(const Line& line);
std::optional<AppliedOverflow> applied_of(const Line& line);
/// Returns true if the run ended because its loss scale could not be lowered further.
bool ends_at_minimum(const Line& line);
std::optional<Bar> bar_of(std::string_view line);
/// Returns true if one of the functions above, except bar_of(), may find a message.
bool has_message_words(const Line& line);
/// Sets the progress and the scalars of `found` from a line's pairs: those of a step, of a progress
/// bar, or of a dictionary as Hugging Face's Trainer prints it. Requires that found.bar is set.
void read_pairs(std::string_view line, const std::vector<lines::Pair>& pairs, LineWords& words,
                ConsoleLine& found);
/// Sets the progress and the scalars of `found` from the values that a pattern names in a line.
void read_values(std::string_view line, const std::vector<lines::NamedValue>& values,
                 ConsoleLine& found);

}  // namespace halfscope::analyzers::readers::console
