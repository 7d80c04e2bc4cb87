// SPDX-License-Identifier: Apache-2.0
// Reads the progress of a run from the pairs of a line, by their names (readers/lines), for any
// program. Exceptions:
// * "steps: 10 loss: 1.2 iter time (s): 0.1": DeepSpeed's pipeline engine prints this line besides
//   its counters, and perhaps later. Its scalars are used, but not as progress.
// * "Train Metrics (step 100) - ..": fairseq2's step counts applied updates.
// * "Epoch 1, batch 50, loss[..": each rank of icefall prints such lines, and its number as
// "(0/4)".
// * Megatron-LM prints a loss only if it is above 0. A line without a loss had NaN.
// * A step among the fields of a progress bar is used for scalars, but not as progress.
// * A line with an epoch and no other step counts epochs, except the last line of a Hugging Face
//   Trainer, which has the mean loss of the run.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "analyzers/readers/lines/pairs.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

using lines::Meaning;
using lines::Pair;

/// Collects the step and the scalars from the pairs of a line.
class Said {
 public:
  Said(std::string_view line, const std::vector<Pair>& pairs) : line_(line) {
    for (const Pair& pair : pairs) take(pair);
    choose_step();
    // Without a total, the first part is used, or the first that is NaN or infinite.
    if (!scalars.loss) scalars.loss = bad_loss_ ? bad_loss_ : part_loss_;
    if (!scalars.gradient_norm) scalars.gradient_norm = bad_norm_ ? bad_norm_ : part_norm_;
  }
  Said(std::string_view line, const std::vector<lines::NamedValue>& values) : line_(line) {
    for (const lines::NamedValue& value : values) take(value.pair, value.meaning, 0);
    choose_step();
  }

  LineScalars scalars;
  std::optional<std::int64_t> step, epoch, total, skipped, updates;
  std::string_view step_name;
  bool global = false, applied = false, of_interval = false;
  /// Returns true if a word for evaluations precedes the loss.
  bool is_evaluation() const {
    return loss_at_ && lines::tells_evaluation(line_.substr(0, *loss_at_));
  }
  /// Returns true if the line has a value of a training step besides the step's number.
  bool any() const { return scalars.any() || skipped || scalars.found_inf; }
  /// Sets the step to the bar's count and returns true if the text before the bar has an epoch:
  /// "Epoch 2:  22%|## | 4/18".
  bool count_by(const Bar& bar) {
    const Said before(bar.of, lines::pairs_in(bar.of));
    if (!before.epoch) return false;
    step = bar.done;
    total = bar.total;
    epoch = before.epoch;
    step_name = "bar";
    return true;
  }
  /// Uses the epoch as the step.
  void count_epochs() {
    step = std::exchange(epoch, std::nullopt);
    step_name = "epoch";
  }

 private:
  template <typename T>
  void keep(std::optional<T>& kept, Meaning meaning, int rank, T value) {
    int& before = ranks_[static_cast<std::size_t>(meaning)];
    const bool broke = before == rank && !std::isfinite(static_cast<double>(value));
    if (kept && before <= rank && !broke) return;
    kept = value;
    before = rank;
  }

  /// Returns the meaning of a pair whose name has no meaning, in lines such as "Epoch: [0]
  /// [20/400]", "20/400 [==>..] - loss: 1.2" and "3epoch:train:1-50batch".
  Meaning meaning_without_name(const Pair& pair) const {
    if (pair.name.empty() && pair.total && (after_epoch_ || before_bar(pair))) return Meaning::step;
    if (pair.unit == "epoch") return Meaning::epoch;
    return pair.unit == "batch" && epoch ? Meaning::step : Meaning::none;
  }

  /// Reads a step in brackets: "Training [40/5000]". In "[0/5][12/391]" the first is the epoch.
  void take_bracket(const Pair& pair) {
    if (step && step_rank_ < kBracket) return;
    if (!pair.total) return take_two(pair);
    const std::string_view before = line_.substr(0, at(pair));
    const std::string_view rest = behind(pair);
    const std::size_t end = std::min(rest.find_first_not_of(" /0123456789"), rest.size());
    const bool date = std::ranges::count(rest.substr(0, end), '/') != 1;
    const bool bracket = before.substr(0, before.find_last_not_of(' ') + 1).ends_with('[') &&
                         (rest.substr(end).starts_with(']') || rest.substr(end).starts_with('('));
    if (date || !bracket) return;
    if (step && before.substr(0, before.rfind('[')).ends_with("]")) epoch = step;
    if (step && !epoch) return;
    step.reset();
    take_step(pair, Meaning::step, kBracket);
  }

  /// Reads an epoch and its batch at the beginning of a line, as PyTorch's tutorial prints them:
  /// "[1,  2000] loss: 2.2".
  void take_two(const Pair& pair) {
    const std::string_view before = line_.substr(0, at(pair));
    if (at(pair) < 40 && before.find_first_not_of(" [") == std::string_view::npos) {
      first_of_two_ = before.ends_with('[') ? pair.count() : std::nullopt;
    } else if (first_of_two_ && behind(pair).starts_with(']') && pair.count()) {
      const std::size_t mark = before.find_last_not_of(' ');
      if (mark == std::string_view::npos || before[mark] != ',') return;
      take_step(pair, Meaning::step, kBracket);
      epoch = first_of_two_;
      first_of_two_.reset();
    }
  }

  /// Returns at most 40 characters after a pair, since a long line may have many pairs.
  std::string_view behind(const Pair& pair) const {
    constexpr std::size_t kLookedAt = 40;
    return line_.substr(at(pair) + pair.text.size(), kLookedAt);
  }

  /// Returns true if Keras's bar, " [=====>....]", follows a pair.
  bool before_bar(const Pair& pair) const {
    const std::string_view rest = behind(pair);
    const std::size_t open = std::min(rest.find_first_not_of("0123456789/ "), rest.size());
    return rest.substr(open).starts_with("[=") || rest.substr(open).starts_with("[>") ||
           rest.substr(open).starts_with("[..");
  }

  std::size_t at(const Pair& pair) const {
    return static_cast<std::size_t>(pair.text.data() - line_.data());
  }

  void take_step(const Pair& pair, Meaning meaning, int rank) {
    const auto count = pair.count();
    if (!count || (!pair.unit.empty() && pair.unit != "batch")) return;
    rank += meaning == Meaning::step ? 1 : 0;
    if (step && rank >= step_rank_) return;
    step = count;
    step_rank_ = rank;
    step_name = pair.name;
    total = pair.total;
    global = meaning != Meaning::step;
    applied = meaning == Meaning::updates;
  }

  /// Makes the counter of updates the step, unless the line names a step of the run. Then `updates`
  /// keeps the counter.
  void choose_step() {
    const bool named = step && !epoch && !step_name.empty() && step_rank_ <= 1;
    if (!updates_ || named) return;
    take_step(*updates_, Meaning::updates, 0);
    updates.reset();
  }

  void take(const Pair& pair) {
    auto [meaning, rank] = pair.named;
    // "train:12" is a function and a line number in its source.
    if (meaning == Meaning::epoch && rank > 0 && line_[at(pair) - 1] != ' ') return;
    if (meaning == Meaning::none) meaning = meaning_without_name(pair);
    after_epoch_ = meaning == Meaning::epoch;
    if (meaning == Meaning::none) return take_bracket(pair);
    if (pair.is_truth == (meaning == Meaning::overflow)) take(pair, meaning, rank);
  }

  /// Keeps the first value and the first that is NaN or infinite. Ignores values with a unit: "5%".
  void take_part(const Pair& pair, std::optional<double>& first, std::optional<double>& bad) {
    if (!pair.unit.empty()) return;
    if (!first) first = pair.value;
    if (!std::isfinite(pair.value) && !bad) bad = pair.value;
  }
  void take_loss_part(const Pair& pair) {
    if (!pair.unit.empty()) return;
    loss_at_ = loss_at_.value_or(at(pair));
    ++scalars.parts;
    if (!std::isfinite(pair.value) && ++scalars.bad_parts == 1) scalars.bad_part = pair.name;
    take_part(pair, part_loss_, bad_loss_);
  }

  void take(const Pair& pair, Meaning meaning, int rank) {
    const auto number = [&](std::optional<double>& to) { keep(to, meaning, rank, pair.value); };
    const auto first = [&](std::optional<std::int64_t>& to) { to = to ? to : pair.count(); };
    switch (meaning) {
      case Meaning::updates:
        if (!updates_) updates_ = pair;
        return first(updates);
      case Meaning::global_step:
      case Meaning::step: return take_step(pair, meaning, rank);
      case Meaning::epoch: return first(epoch);
      case Meaning::loss:
        if (!pair.unit.empty()) return;
        loss_at_ = loss_at_.value_or(at(pair));
        return number(scalars.loss);
      case Meaning::loss_part: return take_loss_part(pair);
      case Meaning::evaluation_loss: return number(scalars.evaluation_loss);
      case Meaning::gradient_norm: return number(scalars.gradient_norm);
      case Meaning::norm_part: return take_part(pair, part_norm_, bad_norm_);
      case Meaning::loss_scale:
        if (rank == lines::kByValue && !exact_log2(pair.value)) return;
        return number(scalars.loss_scale);
      case Meaning::log2_loss_scale:
        return keep(scalars.loss_scale, Meaning::loss_scale, rank, std::exp2(pair.value));
      case Meaning::learning_rate: return number(scalars.learning_rate);
      case Meaning::skipped:
      case Meaning::skipped_interval:
        of_interval = meaning == Meaning::skipped_interval;
        return first(skipped);
      case Meaning::nan_iterations: return first(scalars.nan_iterations);
      case Meaning::overflow: scalars.found_inf = pair.value != 0; return;
      case Meaning::none: return;
    }
  }

  std::string_view line_;
  std::optional<std::size_t> loss_at_;
  std::optional<double> part_loss_, bad_loss_, part_norm_, bad_norm_;  // "bad": NaN or infinite
  std::optional<std::int64_t> first_of_two_;
  std::optional<Pair> updates_;                           // the counter of updates
  std::array<int, lines::kMeaningNames.size()> ranks_{};  // ranks of kept values, by meaning
  static constexpr int kBracket = 8;                      // above the rank of any name
  int step_rank_ = 0;
  bool after_epoch_ = false;
};

/// Returns the rank that icefall prints before "Epoch": 1 for "(1/4) Epoch". Otherwise 0.
std::int64_t rank_of_epoch(std::string_view line) {
  const std::string_view before = line.substr(0, std::min(line.find("Epoch "), line.size()));
  const std::size_t open = before.rfind('(');
  if (open == std::string_view::npos || !before.ends_with(") ")) return 0;
  return count_after(before.substr(open), "(").value_or(0);
}

/// Returns true if Megatron-LM omitted a loss that is NaN: no step was skipped in the interval.
bool lacks_loss(const Said& said) {
  const LineScalars& s = said.scalars;
  return said.of_interval && said.skipped == 0 && s.learning_rate && s.loss_scale && !s.loss;
}

Periodic periodic_in(const Said& said, const LineWords& words, std::string_view line) {
  Periodic found{*said.step, said.applied, said.skipped, said.of_interval};
  if (said.applied && !said.step_name.empty()) found.counter = said.step_name;
  if (words.fairseq2) {
    found.applied = true;
    found.counter = "fairseq2's step";
  }
  found.total = said.total;
  found.updates = said.updates;
  found.may_restart = !said.global && !said.skipped;
  if (said.epoch && found.may_restart) {
    found.in_epoch = InEpoch{said.epoch, rank_of_epoch(line), said.total};
  } else if (words.batches) {
    found.in_epoch = InEpoch{std::nullopt, rank_of_epoch(line), std::nullopt};
  }
  const LineScalars& s = said.scalars;
  found.alone = found.applied || found.skipped || s.loss_scale || s.gradient_norm ||
                s.nan_iterations || s.found_inf;
  found.form = std::hash<std::string_view>{}(said.step_name);
  return found;
}

/// Sets the results of a line without progress, a bar or a dictionary.
void read_loose(const Said& said, std::string_view line, ConsoleLine& found) {
  const bool evaluation = (said.step || said.epoch) && lines::tells_evaluation(line);
  found.scalars.evaluation_loss = said.scalars.evaluation_loss;
  if (said.any()) {
    found.loose = said.scalars;
  } else if (said.step) {
    found.header = Header{*said.step, false, evaluation};
  } else if (said.epoch) {
    found.header = Header{*said.epoch, true, evaluation};
  }
}

}  // namespace

std::optional<Bar> bar_of(std::string_view line) {
  const std::size_t percent = line.find("%|");
  if (percent == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find(" [", percent);
  const std::size_t begin = line.rfind('|', end);
  if (end == std::string_view::npos || begin <= percent) return std::nullopt;
  std::string_view counts = line.substr(begin + 1, end - begin - 1);
  counts.remove_prefix(std::min(counts.size(), counts.find_first_not_of(' ')));
  const std::size_t slash = counts.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto done = common::integer_in(counts.substr(0, slash)),
             total = common::integer_in(counts.substr(slash + 1));
  if (!done || !total || *done < 0 || *total > kMostSteps || *done > *total) return std::nullopt;
  return Bar{*done, *total, line.substr(0, percent)};
}

void read_pairs(std::string_view line, const std::vector<Pair>& pairs, LineWords& words,
                ConsoleLine& found) {
  if (words.wandb) return;
  Said said(line, pairs);
  const bool of_bar = found.bar.has_value();
  if (!words.of_evaluation) words.of_evaluation = said.is_evaluation();
  if (*words.of_evaluation || (of_bar && lines::tells_evaluation(found.bar->of))) {
    found.scalars.evaluation_loss = said.scalars.loss;
    return;
  }
  const bool by_epoch =
      !said.step && said.epoch && said.any() && !of_bar && !words.dictionary && !words.run_ends;
  if (by_epoch) said.count_epochs();
  const bool bar_counts = of_bar && !said.step && said.scalars.any() && said.count_by(*found.bar);
  const bool of_step =
      said.step && said.any() && !words.pipeline && (!of_bar || said.applied || bar_counts);
  if (of_step) found.periodic = periodic_in(said, words, line);
  if (by_epoch && found.periodic) {
    found.periodic->form = kEpochForm;
    found.periodic->alone = found.periodic->may_restart = false;
  }
  if (!of_step && !of_bar && !words.pipeline && !words.dictionary) {
    return read_loose(said, line, found);
  }
  if (lacks_loss(said)) said.scalars.loss = std::numeric_limits<double>::quiet_NaN();
  found.scalars = said.scalars;
  if (!of_step) {
    found.scalars.step = said.step;
    found.scalars.found_inf.reset();
  }
}

void read_values(std::string_view line, const std::vector<lines::NamedValue>& values,
                 ConsoleLine& found) {
  Said said(line, values);
  if (!said.step && said.epoch) said.count_epochs();
  found.scalars = said.scalars;
  if (!said.step) return;
  found.periodic = periodic_in(said, LineWords(), line);
  found.periodic->alone = true;
}

}  // namespace halfscope::analyzers::readers::console
