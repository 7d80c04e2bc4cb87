// SPDX-License-Identifier: Apache-2.0
// Meanings of the names that programs print before values.
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
  global_step,  ///< steps, counted over the run
  updates,      ///< applied updates, counted over the run
  step,         ///< steps, counted over the run or from the beginning of each epoch
  epoch,
  loss_part,  ///< loss whose name has a further word: "loss_ctc", "critic/vf_loss"
  norm_part,  ///< gradient norm of a part of the model: "critic/grad_norm"
  loss,       ///< this and all later enumerators are meanings of scalars
  learning_rate,
  loss_scale,
  log2_loss_scale,
  overflow,  ///< True or 1 if the step was skipped
  gradient_norm,
  evaluation_loss,
  nan_iterations,   ///< number since the previous such line
  skipped,          ///< number of skipped steps so far
  skipped_interval  ///< number of skipped steps since the previous such line
};

/// Names of the meanings in patterns (pattern.hpp), in the order above; empty: not allowed there.
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
/// Returns the name of a meaning in a pattern: "{loss}"; "{}" for Meaning::none.
std::string in_braces(Meaning meaning);
/// Returns all names that a pattern may have, for help and messages: "{step}, {epoch}, ..".
std::string pattern_names();

/// Rank of names such as "scale", which mean a loss scale only if the value is a power of two.
inline constexpr int kByValue = 9;

/// The meaning of a name.
struct Named {
  Meaning meaning = Meaning::none;
  /// If several values of a line have one meaning, the value with the lowest rank is used. Among
  /// equal ranks it is the first value, or a later value that is NaN or infinite.
  int rank = 0;

  bool known() const { return meaning != Meaning::none; }
};

/// Returns the meaning of a name. Case, punctuation and words for training are ignored: "LM Loss",
/// "lm-loss" and "train/lm_loss" are the same name. After a word for evaluations, as in
/// "val/lm_loss", a loss is an evaluation_loss.
Named meaning_of(std::string_view name);

/// Returns the meaning of a scalar's tag in a table, a history or an event file: the meaning of the
/// whole tag, or else of its last parts. Slashes, dots and " - " (after the run's name in exports
/// of W&B) separate parts. A word for training or evaluation may be any part before the name, or
/// the last part: "Loss/val". Never returns a count of steps or epochs. If several tags of a log
/// have one meaning, callers use the lowest rank, then the first tag. More slashes raise the rank.
Named meaning_of_tag(std::string_view tag);

/// Returns the rank of a table's column as the source of step numbers, by its name. Readers use the
/// column with the lowest rank: 0 for steps counted over the run, more for other steps, batches and
/// epochs. Empty for a name that counts none of these.
std::optional<int> step_rank(std::string_view name);

/// Returns a scalar's meaning in words, for messages: "learning rate". Empty for all others.
std::string_view name_of(Meaning meaning);

/// Returns true if a text has a whole word for evaluations: "validation: loss", but not "test.py".
bool tells_evaluation(std::string_view text);

}  // namespace halfscope::analyzers::readers::lines
