// SPDX-License-Identifier: Apache-2.0
// What the names of printed values mean, as programs write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::lines {

enum class Meaning : std::uint8_t {
  none,
  global_step,  ///< counted over the run
  updates,      ///< applied updates, counted over the run
  step,         ///< counted over the run, or, where lines have an epoch, perhaps over that
  epoch,
  loss_part,  ///< of a loss with a further word: "loss_ctc", "critic/vf_loss"
  norm_part,  ///< of the gradients of a part of the model: "critic/grad_norm"
  loss,       ///< this and all that follow are meanings of scalars
  learning_rate,
  loss_scale,
  log2_loss_scale,
  overflow,  ///< True where the step was skipped
  gradient_norm,
  evaluation_loss,
  nan_iterations,   ///< since the line before
  skipped,          ///< steps so far
  skipped_interval  ///< steps since the line before
};

/// What patterns of lines (pattern.hpp) call a meaning, in the order above; empty: nothing.
inline constexpr std::array<std::string_view, 17> kMeaningNames = {"",
                                                                   "global_step",
                                                                   "updates",
                                                                   "step",
                                                                   "epoch",
                                                                   "",
                                                                   "",
                                                                   "loss",
                                                                   "lr",
                                                                   "loss_scale",
                                                                   "log2_loss_scale",
                                                                   "overflow",
                                                                   "grad_norm",
                                                                   "evaluation_loss",
                                                                   "nan_iterations",
                                                                   "skipped",
                                                                   "skipped_interval"};
static_assert(kMeaningNames.size() == static_cast<std::size_t>(Meaning::skipped_interval) + 1);
/// Returns true for counts of steps, updates and epochs.
inline bool counts_steps(Meaning meaning) {
  return meaning >= Meaning::global_step && meaning <= Meaning::epoch;
}
/// "{loss}"; "{}" for no meaning.
std::string in_braces(Meaning meaning);
/// "{step}, {epoch}, ..": all names that a pattern may have, for help and messages.
std::string pattern_names();

/// The rank of a name that means a loss scale only if its value is a power of two.
inline constexpr int kByValue = 9;

struct Named {
  Meaning meaning = Meaning::none;
  /// If several values of a line have one meaning, the lowest rank is used, then the first.
  int rank = 0;

  bool known() const { return meaning != Meaning::none; }
};

/// Returns the meaning of a name, whatever its case and marks: "LM Loss", "lm-loss" and
/// "train/lm_loss" are one name, and words for training may stand anywhere in it. A word for
/// evaluations before it makes a loss that of an evaluation.
Named meaning_of(std::string_view name);

/// Returns the meaning of a scalar's tag in a table, a history or an event file: that of the whole
/// tag, or else of its last parts. Slashes, dots and " - " (after the run, in what W&B exports)
/// separate parts. A part for training or evaluation may stand anywhere before the name, or last:
/// "Loss/val". Names of steps mean nothing here. Of several tags with one meaning in a log the
/// lowest rank holds, then the first; fewer slashes make it lower.
Named meaning_of_tag(std::string_view tag);

/// How well a column's name says which step a row is of: 0 for steps of the run, more for steps,
/// batches and epochs. Empty for all other names.
std::optional<int> step_rank(std::string_view name);

/// "loss", "learning rate": what people call a meaning that tags have.
std::string_view name_of(Meaning meaning);

/// Whether a word for evaluations stands in a text by itself: "validation: loss", not "test.py".
bool tells_evaluation(std::string_view text);

}  // namespace halfscope::analyzers::readers::lines
