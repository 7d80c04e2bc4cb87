// SPDX-License-Identifier: Apache-2.0
// What the names of printed values mean, as programs write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::lines {

enum class Meaning : std::uint8_t {
  none,
  global_step,  ///< counted over the run
  updates,      ///< applied updates, counted over the run
  step,         ///< counted over the run, or, where lines have an epoch, perhaps over that
  epoch,
  loss,
  evaluation_loss,
  gradient_norm,
  loss_scale,
  log2_loss_scale,
  learning_rate,
  skipped,           ///< steps so far
  skipped_interval,  ///< steps since the line before
  nan_iterations,    ///< since the line before
  overflow           ///< True where the step was skipped
};

/// What patterns of lines (pattern.hpp) call a meaning, in the order above.
inline constexpr std::array<std::string_view, 15> kMeaningNames = {
    "",     "global_step",     "updates",          "step",           "epoch",
    "loss", "evaluation_loss", "grad_norm",        "loss_scale",     "log2_loss_scale",
    "lr",   "skipped",         "skipped_interval", "nan_iterations", "overflow"};
static_assert(kMeaningNames.size() == static_cast<std::size_t>(Meaning::overflow) + 1);
/// "{loss}"; "{}" for no meaning.
std::string in_braces(Meaning meaning);
/// "{step}, {epoch}, ..": all names that a pattern may have, for help and messages.
std::string pattern_names();

struct Named {
  Meaning meaning = Meaning::none;
  /// Of several values with one meaning in a line the lowest rank holds, then the first.
  int rank = 0;
};

/// The meaning of a name, whatever its case and marks: "LM Loss", "lm-loss" and "train/lm_loss" are
/// one name. A word for evaluations before it makes a loss that of an evaluation.
Named meaning_of(std::string_view name);

/// Whether a word for evaluations stands in a text by itself: "validation: loss", not "test.py".
bool tells_evaluation(std::string_view text);

}  // namespace halfscope::analyzers::readers::lines
