// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace halfscope::analyzers::readers::lines {
namespace {

struct Row {
  std::string_view name;
  Meaning meaning;
  int rank = 0;
};

/// Sorted by name.
constexpr auto kNames = [] {
  using enum Meaning;
  std::array rows = {
      Row{"global_step", global_step},
      Row{"global_steps", global_step},
      Row{"global_iter", global_step},
      Row{"global_iteration", global_step},
      Row{"globalstep", global_step},
      Row{"global_batch_idx", global_step},       // icefall
      Row{"global_step_max_steps", global_step},  // ms-swift
      Row{"total_it", global_step},               // OpenPCDet
      Row{"num_updates", updates},                // fairseq
      Row{"step", step},
      Row{"steps", step},
      Row{"iter", step},
      Row{"iters", step},
      Row{"iteration", step},
      Row{"iterations", step},
      Row{"it", step},
      Row{"itr", step},
      Row{"update", step},
      Row{"up", step},  // Marian
      Row{"batch", step, 1},
      Row{"epoch", epoch},
      Row{"ep", epoch},
      Row{"train", epoch},  // timm's "Train: 3 [50/1251"
      Row{"lm_loss", loss},
      Row{"lm_loss_value", loss},
      Row{"reduced_loss", loss},
      Row{"reduced_train_loss", loss},
      Row{"total_loss", loss},
      Row{"loss_total", loss},
      Row{"loss", loss, 1},
      Row{"loss_train", loss, 1},
      Row{"crossentropyloss", loss, 2},  // OLMo
      Row{"cost", loss, 2},
      Row{"nll_loss", loss, 2},
      Row{"ce_loss", loss, 2},
      Row{"cross_entropy", loss, 2},
      Row{"xent", loss, 2},
      Row{"nll", loss, 2},
      Row{"grad_norm", gradient_norm},
      Row{"norm", gradient_norm, 1},  // llm.c
      Row{"gradnorm", gradient_norm},
      Row{"gradient_norm", gradient_norm},
      Row{"gnorm", gradient_norm},
      Row{"total_grad_norm", gradient_norm},
      Row{"grad_norm_total", gradient_norm},
      Row{"global_grad_norm", gradient_norm},
      Row{"global_norm", gradient_norm},
      Row{"total_norm", gradient_norm},
      Row{"lossscale", loss_scale},
      Row{"amp_scaler", loss_scale},  // Coqui TTS
      Row{"grad_scaler", loss_scale},
      Row{"cost_scaling_factor", loss_scale},
      Row{"lg_loss_scale", log2_loss_scale},
      Row{"lr", learning_rate},
      Row{"l_r", learning_rate},
      Row{"lr_0", learning_rate},
      Row{"lr0", learning_rate},
      Row{"learning_rate", learning_rate},
      Row{"learningrate", learning_rate},
      Row{"skipped", skipped},
      Row{"skipped_steps", skipped},
      Row{"number_of_skipped_iterations", skipped_interval},
      Row{"skipped_iterations", skipped_interval},
      Row{"number_of_nan_iterations", nan_iterations},
      Row{"nan_iterations", nan_iterations},
      Row{"nan_count", nan_iterations},
      Row{"overflow", overflow},
      Row{"overflow_cond", overflow},  // MindFormers
  };
  std::ranges::sort(rows, {}, &Row::name);
  return rows;
}();

constexpr std::array<std::string_view, 16> kEvaluation = {
    "val",        "valid",      "validation",      "validating", "eval",   "evaluation",
    "evaluating", "test",       "testing",         "dev",        "sanity", "val_loss",
    "eval_loss",  "valid_loss", "validation_loss", "test_loss"};

/// What may stand before a name and changes nothing.
constexpr std::array<std::string_view, 14> kBefore = {
    "train", "training", "trainer", "current", "cur",  "model", "optim",
    "the",   "of",       "at",      "in",      "info", "and",   "main"};

/// Words that make "scale" at a name's end a loss scale.
constexpr std::array<std::string_view, 7> kScaled = {"loss", "grad", "amp",      "scaler",
                                                     "cost", "fp16", "lossscale"};

bool is_in(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

/// A name in lower case, with all marks as one underline; empty if it is longer than any name.
class Plain {
 public:
  explicit Plain(std::string_view name) {
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      const bool mark = std::isalnum(byte) == 0;
      if (mark && (size_ == 0 || text_[size_ - 1] == '_')) continue;
      if (size_ == text_.size()) {
        size_ = 0;
        return;
      }
      text_[size_++] = mark ? '_' : static_cast<char>(std::tolower(byte));
    }
    if (size_ > 0 && text_[size_ - 1] == '_') --size_;
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 64> text_;
  std::size_t size_ = 0;
};

bool is_scale(std::string_view name) {
  constexpr std::string_view kScale = "_scale";
  if (!name.ends_with(kScale)) return false;
  name.remove_suffix(kScale.size());
  while (true) {
    const std::size_t end = std::min(name.find('_'), name.size());
    if (is_in(name.substr(0, end), kScaled)) return true;
    if (end == name.size()) return false;
    name.remove_prefix(end + 1);
  }
}

}  // namespace

Named meaning_of(std::string_view name) {
  const Plain plain(name);
  bool evaluation = false;
  for (std::string_view rest = plain.text(); !rest.empty();) {
    const auto row = std::ranges::lower_bound(kNames, rest, {}, &Row::name);
    if (row != kNames.end() && row->name == rest) {
      if (!evaluation) return {row->meaning, row->rank};
      return {row->meaning == Meaning::loss ? Meaning::evaluation_loss : Meaning::none, row->rank};
    }
    const std::size_t end = rest.find('_');
    const std::string_view first = rest.substr(0, end);
    const bool of_evaluation = is_in(first, kEvaluation);
    if (end == std::string_view::npos || !(of_evaluation || is_in(first, kBefore))) {
      return {!evaluation && is_scale(rest) ? Meaning::loss_scale : Meaning::none, 0};
    }
    evaluation |= of_evaluation;
    rest.remove_prefix(end + 1);
  }
  return {};
}

bool tells_evaluation(std::string_view text) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.' ||
           c == '-';
  };
  std::array<char, 16> word{};
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > at && end - at <= word.size()) {
      std::transform(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(end), word.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (is_in(std::string_view(word.data(), end - at), kEvaluation)) return true;
    }
    at = end + 1;
  }
  return false;
}

}  // namespace halfscope::analyzers::readers::lines
