// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/scalar_tags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace halfscope::analyzers::readers::common {
namespace {

/// The parts of a tag between slashes and dots, in lower case, words joined by '_'. W&B's exports
/// write "RUN - METRIC".
std::vector<std::string> parts_of(std::string_view tag) {
  constexpr std::string_view kOfRun = " - ";
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < tag.size(); ++i) {
    const char c = tag[i];
    const bool of_run = tag.substr(i).starts_with(kOfRun);
    if (of_run) i += kOfRun.size() - 1;
    if (of_run || c == '/' || c == '.') {
      parts.emplace_back();
    } else if (c == '-' || c == ' ') {
      parts.back().push_back('_');
    } else {
      parts.back().push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return parts;
}

template <std::size_t n>
bool is_one_of(const std::string& part, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), part) != std::end(names);
}

bool is_validation(const std::string& part) {
  static constexpr std::string_view names[] = {"val", "valid", "validation", "eval", "test", "dev"};
  return is_one_of(part, names);
}

bool is_training(const std::string& part) { return part == "train" || part == "training"; }

/// Lightning's LearningRateMonitor: lr-AdamW, of several parameter groups lr-AdamW/pg1.
bool is_learning_rate(const std::vector<std::string>& parts) {
  static constexpr std::string_view names[] = {"lr", "learning_rate"};
  const std::string& last = parts.back();
  if (is_one_of(last, names)) return true;
  const bool first_group = last == "pg1" && parts.size() > 1;
  const std::string& of_optimizer = first_group ? parts[parts.size() - 2] : last;
  return of_optimizer.starts_with("lr_") && of_optimizer.size() > 3;
}

/// DeepSpeed Train/Samples/loss_scale, Megatron loss-scale, fairseq loss_scale, and what users of
/// GradScaler.get_scale() call it.
bool is_loss_scale(const std::vector<std::string>& parts) {
  static constexpr std::string_view names[] = {"loss_scale", "lossscale",   "grad_scale",
                                               "amp_scale",  "grad_scaler", "scaler_scale"};
  static constexpr std::string_view scalers[] = {"amp", "scaler", "grad_scaler", "gradscaler"};
  if (is_one_of(parts.back(), names)) return true;
  return parts.back() == "scale" &&
         (parts.size() == 1 || is_one_of(parts[parts.size() - 2], scalers));
}

}  // namespace

std::optional<ScalarMeaning> scalar_meaning(std::string_view tag) {
  static constexpr std::string_view losses[] = {"loss", "train_loss", "training_loss", "lm_loss",
                                                "train_loss_step"};
  static constexpr std::string_view norms[] = {"grad_norm", "gradient_norm", "global_grad_norm",
                                               "total_grad_norm", "gnorm"};
  static constexpr std::string_view evaluations[] = {"eval_loss", "val_loss", "valid_loss",
                                                     "validation_loss"};
  std::vector<std::string> parts = parts_of(tag);
  const bool evaluation = std::ranges::any_of(parts, is_validation);
  // "Loss/train" and "Loss/val": what stands before says what it is.
  if (parts.size() > 1 && (is_validation(parts.back()) || is_training(parts.back()))) {
    parts.pop_back();
  }
  if (is_loss_scale(parts)) return ScalarMeaning::loss_scale;
  if (is_learning_rate(parts)) return ScalarMeaning::learning_rate;
  if (parts.back() == "found_inf") return ScalarMeaning::found_inf;
  if (is_one_of(parts.back(), norms)) return ScalarMeaning::gradient_norm;
  if (is_one_of(parts.back(), evaluations)) return ScalarMeaning::evaluation_loss;
  if (!is_one_of(parts.back(), losses)) return std::nullopt;
  return evaluation ? ScalarMeaning::evaluation_loss : ScalarMeaning::loss;
}

std::string_view name_of(ScalarMeaning meaning) {
  switch (meaning) {
    case ScalarMeaning::loss: return "loss";
    case ScalarMeaning::learning_rate: return "learning rate";
    case ScalarMeaning::loss_scale: return "loss scale";
    case ScalarMeaning::found_inf: return "found_inf";
    case ScalarMeaning::gradient_norm: return "gradient norm";
    case ScalarMeaning::evaluation_loss: break;
  }
  return "loss of evaluations";
}

void tell_scalar(Timeline& timeline, ScalarMeaning meaning, std::int64_t step, double value) {
  switch (meaning) {
    case ScalarMeaning::loss: timeline.loss(step, value); break;
    case ScalarMeaning::learning_rate: timeline.learning_rate(step, value); break;
    case ScalarMeaning::loss_scale: timeline.loss_scale(step, value); break;
    case ScalarMeaning::found_inf: timeline.found_inf(step, value != 0); break;
    case ScalarMeaning::gradient_norm: timeline.gradient_norm(step, value); break;
    case ScalarMeaning::evaluation_loss: timeline.evaluation_loss(step, value); break;
  }
}

void ScalarTags::take(const std::string& tag, std::int64_t step, double value) {
  timeline_.recorded_scale(tag, step, value);
  const std::optional<ScalarMeaning> meaning = scalar_meaning(tag);
  if (!meaning) return;
  std::string& chosen = chosen_[static_cast<std::size_t>(*meaning)];
  if (chosen.empty()) chosen = tag;
  if (chosen != tag) {
    if (unused_.empty()) {
      unused_ = tag;
      used_ = chosen;
    }
    return;
  }
  tell_scalar(timeline_, *meaning, step, value);
}

void ScalarTags::tell_unused(const std::string& log, frames::Notes& notes) const {
  if (unused_.empty()) return;
  notes.add(fmt::format("{}: '{}' and '{}' mean the same; the first is used", log,
                        log::printable(used_), log::printable(unused_)));
}

}  // namespace halfscope::analyzers::readers::common
