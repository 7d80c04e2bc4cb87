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
    {Meaning::updates, 0, "num_updates nupdates"},  // fairseq, flashlight
    {Meaning::updates, 2, "updates"},
    {Meaning::step, 0, "step steps iter iteration it itr update up"},  // Marian
    {Meaning::step, 1, "batch"},
    {Meaning::global_step, 1, "total_timesteps"},  // Stable-Baselines
    {Meaning::epoch, 0, "epoch ep"},
    {Meaning::epoch, 1, "train"},  // timm: "Train: 3 [50/1251"
    {Meaning::loss, 0,
     "lm_loss lm_loss_value reduced_loss reduced_train_loss total_loss loss_total"},
    {Meaning::loss, 1, "loss loss_step"},  // Lightning's train_loss_step
    {Meaning::loss, 2, "cost nll nll_loss ce_loss cross_entropy crossentropyloss xent ctc_loss"},
    {Meaning::loss, 3, "avr_loss"},  // kohya-ss prints only the mean
    {Meaning::gradient_norm, 0,
     "grad_norm gradnorm gradient_norm gnorm total_grad_norm total_norm"},
    {Meaning::gradient_norm, 0, "grad_norm_total global_grad_norm global_norm"},
    {Meaning::gradient_norm, 2, "norm grad"},  // llm.c, Demucs
    {Meaning::loss_scale, 0, "lossscale cost_scaling_factor amp_scaler grad_scaler"},
    {Meaning::loss_scale, 1, "scale_factor"},                    // flashlight
    {Meaning::loss_scale, kByValue, "scale scaler gradscaler"},  // in hand-written loops
    {Meaning::log2_loss_scale, 0, "lg_loss_scale"},
    {Meaning::learning_rate, 0, "lr l_r lr_0 lr0 learning_rate learningrate"},
    {Meaning::skipped, 2, "skipped skipped_steps"},
    {Meaning::skipped_interval, 2, "number_of_skipped_iterations skipped_iterations"},
    {Meaning::nan_iterations, 2, "number_of_nan_iterations nan_iterations nan_count"},
    {Meaning::overflow, 0, "found_inf"},               // PyTorch's GradScaler
    {Meaning::overflow, 2, "overflow overflow_cond"},  // MindFormers
};

struct Row {
  std::string_view name;
  Named named;
};
/// Returns one row for each name, sorted by name.
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

/// Words that may precede a name and do not change its meaning.
constexpr std::array<std::string_view, 15> kBefore = {
    "train", "training", "trainer", "current", "cur", "model", "optim",  "the",
    "of",    "at",       "in",      "info",    "and", "main",  "samples"};
constexpr std::array<std::string_view, 3> kTraining = {"train", "training", "trainer"};

/// Words that show that a name with "loss" is not a part of the training's loss but a mean, a
/// bound, a setting, or something else, such as the loss of packets.
constexpr std::array<std::string_view, 36> kNoPart = {
    "best",     "min",      "max",     "avg",      "avr",     "mean",  "average", "ema",
    "smooth",   "smoothed", "running", "weight",   "weights", "coef",  "coeff",   "lambda",
    "scale",    "scaler",   "scaling", "time",     "ratio",   "count", "num",     "std",
    "var",      "delta",    "tokens",  "packet",   "packets", "data",  "stop",    "prev",
    "previous", "last",     "target",  "threshold"};

/// Words that may precede "scale" in the name of a loss scale.
constexpr std::array<std::string_view, 8> kScaled = {"loss", "grad", "amp",       "scaler",
                                                     "cost", "fp16", "lossscale", "gradscaler"};

bool is_in(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

/// A name in lower case, with '_' for each run of other characters between letters and digits.
/// Empty if the name is longer than 64 characters.
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

/// Returns true for "fp16_grad_scale", but not for "attempted_loss_scale" or "logit_scale".
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

const Named* row_of(std::string_view name) {
  const auto row = std::ranges::lower_bound(rows(), name, {}, &Row::name);
  return row != rows().end() && row->name == name ? &row->named : nullptr;
}

/// Returns loss_part for a name with further words before or after a loss, norm_part for a name
/// with further words before a gradient norm, and none for all others.
Meaning part_of(std::string_view name) {
  Meaning found = Meaning::none;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (is_in(word, kNoPart) || is_in(word, kEvaluation)) return Meaning::none;
    const Named* row = row_of(rest);
    const bool is_loss = row != nullptr && row->meaning == Meaning::loss;
    if (is_loss || rest.starts_with("loss_")) found = Meaning::loss_part;
    if (row != nullptr && row->meaning == Meaning::gradient_norm && row->rank == 0) {
      found = Meaning::norm_part;
    }
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return found;
}

/// Removes words for training after the first word: "loss_train_total" becomes "loss_total".
std::string without_training(std::string_view name) {
  std::string kept;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    const std::string_view word = rest.substr(0, end);
    const bool verb = word == "is" && end == rest.size();  // "Loss is nan, stopping training"
    if (kept.empty() || !(verb || is_in(word, kTraining))) {
      kept.append(kept.empty() ? "" : "_").append(word);
    }
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return kept;
}

/// Returns the meaning of a name after a word for evaluations: their loss, an epoch, or none.
Named of_evaluation(Named named) {
  if (named.meaning == Meaning::epoch) return named;
  const bool is_loss = named.meaning == Meaning::loss || named.meaning == Meaning::evaluation_loss;
  return {is_loss ? Meaning::evaluation_loss : Meaning::none, named.rank};
}

Named looked_up(std::string_view name) {
  const std::string plain = without_training(Plain(name).text());
  bool evaluation = false;
  for (std::string_view rest = plain; !rest.empty();) {
    if (const Named* row = row_of(rest)) return evaluation ? of_evaluation(*row) : *row;
    const std::size_t end = rest.find('_');
    const std::string_view first = rest.substr(0, end);
    const bool of_evaluation = is_in(first, kEvaluation);
    if (end == std::string_view::npos || !(of_evaluation || is_in(first, kBefore))) {
      if (evaluation) return {};
      return {is_scale(rest) ? Meaning::loss_scale : part_of(rest), 0};
    }
    evaluation |= of_evaluation;
    rest.remove_prefix(end + 1);
  }
  return {};
}

/// Returns true for Lightning's LearningRateMonitor: "lr-AdamW", or "lr-AdamW/pg1" (first group).
bool is_of_lr_monitor(std::string_view tag) {
  constexpr std::string_view kFirstGroup = "/pg1";
  if (tag.ends_with(kFirstGroup)) tag.remove_suffix(kFirstGroup.size());
  return tag.size() > 3 && (tag.starts_with("lr-") || tag.starts_with("lr_")) &&
         tag.find_first_of("/.") == std::string_view::npos;
}

/// Returns the meaning of a tag or of its last parts; none if it is not a scalar's.
Named meaning_from(std::string_view rest) {
  const Named named = meaning_of(rest);
  if (named.meaning >= Meaning::loss) return named;  // counts of steps are no scalars
  return {is_of_lr_monitor(rest) ? Meaning::learning_rate : Meaning::none, 0};
}

/// Highest rank of a name that has its meaning after any other part: "D/loss" is a loss for every
/// D. Names with higher ranks, as in "layers/norm" and "D/ce_loss", may belong to a part of the
/// model. They have their meaning only if nothing but a run's name precedes them.
constexpr int kSureRank = 1;

Named meaning_by_parts(std::string_view tag) {
  constexpr std::string_view kOfRun = " - ";
  bool evaluation = false, whole = true;
  while (true) {
    Named named = meaning_from(tag);
    if (named.known() && (whole || named.rank <= kSureRank)) {
      return evaluation ? of_evaluation(named) : named;
    }
    const std::size_t mark = std::min(tag.find_first_of("/."), tag.find(kOfRun));
    if (mark == std::string_view::npos) return {};
    evaluation |= is_in(Plain(tag.substr(0, mark)).text(), kEvaluation);
    const bool of_run = tag.substr(mark).starts_with(kOfRun);
    whole &= of_run;
    tag.remove_prefix(mark + (of_run ? kOfRun.size() : 1));
  }
}

/// Returns "val/Loss" for "Loss/val"; empty for tags that do not end with a word for evaluations.
std::string with_last_part_first(std::string_view tag) {
  const std::size_t mark = tag.find_last_of("/.");
  if (mark == std::string_view::npos) return {};
  const std::string_view last = tag.substr(mark + 1);
  if (!is_in(Plain(last).text(), kEvaluation)) return {};
  return std::string(last).append("/").append(tag.substr(0, mark));
}

}  // namespace

Named meaning_of_tag(std::string_view tag) {
  Named named = meaning_by_parts(tag);
  if (!named.known()) named = meaning_by_parts(with_last_part_first(tag));
  if (!named.known() && Plain(tag).text() == "scale") {
    named = {Meaning::loss_scale, 0};  // PyTorch's GradScaler
  }
  constexpr std::ptrdiff_t kMostParts = 1000;
  named.rank = static_cast<int>(named.rank * kMostParts +
                                std::min(std::ranges::count(tag, '/'), kMostParts - 1));
  return named;
}

std::optional<int> step_rank(std::string_view name) {
  const Named named = meaning_of(name);
  switch (named.meaning) {
    case Meaning::global_step:
    case Meaning::updates: return named.rank;
    case Meaning::step: return 1 + named.rank;
    case Meaning::epoch: return named.rank == 0 ? std::optional(3) : std::nullopt;
    default: return std::nullopt;
  }
}

std::string_view name_of(Meaning meaning) {
  switch (meaning) {
    case Meaning::loss: return "loss";
    case Meaning::learning_rate: return "learning rate";
    case Meaning::loss_scale:
    case Meaning::log2_loss_scale: return "loss scale";
    case Meaning::overflow: return "found_inf";
    case Meaning::gradient_norm: return "gradient norm";
    case Meaning::evaluation_loss: return "loss of evaluations";
    case Meaning::nan_iterations: return "number of iterations with NaN";
    case Meaning::skipped:
    case Meaning::skipped_interval: return "number of skipped steps";
    default: return "";
  }
}

std::string in_braces(Meaning meaning) {
  return "{" + std::string(kMeaningNames[static_cast<std::size_t>(meaning)]) + "}";
}

std::string pattern_names() {
  std::string names;
  for (std::size_t i = 1; i < kMeaningNames.size(); ++i) {
    if (kMeaningNames[i].empty()) continue;
    names += (names.empty() ? "" : ", ") + in_braces(static_cast<Meaning>(i));
  }
  return names;
}

Named meaning_of(std::string_view name) {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // A log repeats few names: each thread remembers their meanings.
  constexpr std::size_t kMost = 10'000;
  thread_local std::unordered_map<std::string, Named, Hash, std::equal_to<>> known;
  constexpr std::size_t kLongest = 256;
  if (name.size() > kLongest) return looked_up(name);
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
