// SPDX-License-Identifier: Apache-2.0
// Which scalars of a log are the loss, the learning rate, the loss scale: by the names that
// frameworks give them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::common {

enum class ScalarMeaning : std::uint8_t {
  loss,
  learning_rate,
  loss_scale,
  found_inf,
  gradient_norm,
  evaluation_loss
};
inline constexpr std::size_t kScalarMeanings = 6;
std::string_view name_of(ScalarMeaning meaning);

/// By the last part of a tag, whatever its case and separators: "train/loss", "lm loss",
/// "Train/Samples/lr", "learning-rate", "lr-AdamW/pg1", "amp/scale", "Train/Samples/loss_scale",
/// "eval/loss", "val_loss", "run 7 - loss", and by the one before it in "Loss/train". Empty for all
/// else.
std::optional<ScalarMeaning> scalar_meaning(std::string_view tag);

/// Tells the timeline a value by what it means.
void tell_scalar(Timeline& timeline, ScalarMeaning meaning, std::int64_t step, double value);

/// Hands a log's scalars to a timeline. Of several tags that mean the same the first one holds.
class ScalarTags {
 public:
  explicit ScalarTags(Timeline& timeline) : timeline_(timeline) {}
  void take(const std::string& tag, std::int64_t step, double value);
  /// Notes which tag was left out for another of the same meaning, if any: the first such.
  void tell_unused(const std::string& log, frames::Notes& notes) const;
  /// The tag that is taken for something; empty where none is.
  const std::string& chosen(ScalarMeaning meaning) const {
    return chosen_[static_cast<std::size_t>(meaning)];
  }

 private:
  Timeline& timeline_;
  std::array<std::string, kScalarMeanings> chosen_;  // by meaning; empty: none yet
  std::string unused_, used_;  // the first tag that was left out, and that for which
};

}  // namespace halfscope::analyzers::readers::common
