// SPDX-License-Identifier: Apache-2.0
// What the names of printed values mean, as programs write them.
#pragma once

#include <cstdint>
#include <string_view>

namespace halfscope::analyzers::readers::lines {

enum class Meaning : std::uint8_t {
  none,
  global_step,  ///< counted over the run
  updates,      ///< applied updates, counted over the run
  step,         ///< counted over the run, or, where lines have an epoch, perhaps over that
  epoch,
  loss,
  loss_part,  ///< with a further word: "loss_ctc", "critic/vf_loss"
  evaluation_loss,
  gradient_norm,
  norm_part,  ///< of a part of the model: "critic/grad_norm"
  loss_scale,
  log2_loss_scale,
  learning_rate,
  skipped,           ///< steps so far
  skipped_interval,  ///< steps since the line before
  nan_iterations,    ///< since the line before
  overflow           ///< True where the step was skipped
};

struct Named {
  Meaning meaning = Meaning::none;
  /// Of several values with one meaning in a line the lowest rank holds, then the first.
  int rank = 0;
};

/// Returns the meaning of a name, whatever its case and marks: "LM Loss", "lm-loss" and
/// "train/lm_loss" are one name, and words for training may stand anywhere in it. A word for
/// evaluations before it makes a loss that of an evaluation.
Named meaning_of(std::string_view name);

/// Whether a word for evaluations stands in a text by itself: "validation: loss", not "test.py".
bool tells_evaluation(std::string_view text);

}  // namespace halfscope::analyzers::readers::lines
