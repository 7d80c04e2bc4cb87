// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace halfscope::analyzers::readers::lines {
namespace {

/// Names with one meaning, separated by blanks.
struct Names {
  Meaning meaning;
  int rank;
  std::string_view names;
};
constexpr Names kNames[] = {
    // icefall, ms-swift, OpenPCDet
    {Meaning::global_step, 0, "global_step global_steps global_iter global_iteration globalstep"},
    {Meaning::global_step, 0, "global_batch_idx global_step_max_steps total_it"},
    {Meaning::updates, 0, "num_updates"},                              // fairseq
    {Meaning::step, 0, "step steps iter iteration it itr update up"},  // Marian
    {Meaning::step, 1, "batch"},
    {Meaning::epoch, 0, "epoch ep train"},  // timm's "Train: 3 [50/1251"
    {Meaning::loss, 0,
     "lm_loss lm_loss_value reduced_loss reduced_train_loss total_loss loss_total"},
    {Meaning::loss, 1, "loss loss_train"},
    {Meaning::loss, 2, "cost nll nll_loss ce_loss cross_entropy crossentropyloss xent ctc_loss"},
    {Meaning::loss, 3, "avr_loss"},  // kohya-ss, which prints the mean alone
    {Meaning::gradient_norm, 0,
     "grad_norm gradnorm gradient_norm gnorm total_grad_norm total_norm"},
    {Meaning::gradient_norm, 0, "grad_norm_total global_grad_norm global_norm"},
    {Meaning::gradient_norm, 1, "norm"},  // llm.c
    {Meaning::loss_scale, 0, "lossscale cost_scaling_factor amp_scaler grad_scaler"},
    {Meaning::log2_loss_scale, 0, "lg_loss_scale"},
    {Meaning::learning_rate, 0, "lr l_r lr_0 lr0 learning_rate learningrate"},
    {Meaning::skipped, 0, "skipped skipped_steps"},
    {Meaning::skipped_interval, 0, "number_of_skipped_iterations skipped_iterations"},
    {Meaning::nan_iterations, 0, "number_of_nan_iterations nan_iterations nan_count"},
    {Meaning::overflow, 0, "overflow overflow_cond"},  // MindFormers
};

struct Row {
  std::string_view name;
  Named named;
};
/// A row a name, sorted by name.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> found;
    for (const Names& names : kNames) {
      for (std::string_view rest = names.names; !rest.empty();) {
        const std::string_view name = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        found.push_back({name, {names.meaning, names.rank}});
      }
    }
    std::ranges::sort(found, {}, &Row::name);
    return found;
  }();
  return all;
}

constexpr std::array<std::string_view, 16> kEvaluation = {
    "val",        "valid",      "validation",      "validating", "eval",   "evaluation",
    "evaluating", "test",       "testing",         "dev",        "sanity", "val_loss",
    "eval_loss",  "valid_loss", "validation_loss", "test_loss"};

/// What may stand before a name and changes nothing.
constexpr std::array<std::string_view, 14> kBefore = {
    "train", "training", "trainer", "current", "cur",  "model", "optim",
    "the",   "of",       "at",      "in",      "info", "and",   "main"};

/// Words that stand before "scale" in names of a loss scale.
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
      const bool capital = c >= 'A' && c <= 'Z';
      const bool mark = !capital && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9');
      if (mark && (size_ == 0 || text_[size_ - 1] == '_')) continue;
      if (size_ == text_.size()) {
        size_ = 0;
        return;
      }
      text_[size_++] = mark ? '_' : capital ? static_cast<char>(c - 'A' + 'a') : c;
    }
    if (size_ > 0 && text_[size_ - 1] == '_') --size_;
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 64> text_;
  std::size_t size_ = 0;
};

/// "fp16 grad scale", and not "attempted loss scale" or "logit scale".
bool is_scale(std::string_view name) {
  constexpr std::string_view kScale = "_scale";
  if (!name.ends_with(kScale)) return false;
  name.remove_suffix(kScale.size());
  while (true) {
    const std::size_t end = std::min(name.find('_'), name.size());
    if (!is_in(name.substr(0, end), kScaled)) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

Named looked_up(std::string_view name) {
  const Plain plain(name);
  bool evaluation = false;
  for (std::string_view rest = plain.text(); !rest.empty();) {
    const auto row = std::ranges::lower_bound(rows(), rest, {}, &Row::name);
    if (row != rows().end() && row->name == rest) {
      if (!evaluation) return row->named;
      const bool is_loss = row->named.meaning == Meaning::loss;
      return {is_loss ? Meaning::evaluation_loss : Meaning::none, row->named.rank};
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

}  // namespace

std::string in_braces(Meaning meaning) {
  return "{" + std::string(kMeaningNames[static_cast<std::size_t>(meaning)]) + "}";
}

std::string pattern_names() {
  std::string names;
  for (std::size_t i = 1; i < kMeaningNames.size(); ++i) {
    names += (i == 1 ? "" : ", ") + in_braces(static_cast<Meaning>(i));
  }
  return names;
}

Named meaning_of(std::string_view name) {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // A log has a few names again and again.
  constexpr std::size_t kMost = 10'000;
  thread_local std::unordered_map<std::string, Named, Hash, std::equal_to<>> known;
  if (const auto found = known.find(name); found != known.end()) return found->second;
  if (known.size() == kMost) known.clear();
  return known.emplace(name, looked_up(name)).first->second;
}

bool tells_evaluation(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '-' && c <= '9') || c == '_';
  };
  std::array<char, 16> word{};
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    constexpr std::string_view kFirst = "vVeEtTdDsS";
    if (end > at && end - at <= word.size() && kFirst.find(text[at]) != std::string_view::npos) {
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
