// SPDX-License-Identifier: Apache-2.0
// What is to be said of a console log beside its steps.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analyzers/readers/console/console_steps.hpp"

namespace halfscope::analyzers::readers::console {

std::vector<frames::OtherScaler> ConsoleSteps::other_scalers() const {
  std::vector<frames::OtherScaler> all;
  for (const auto& [scaler, other] : other_scalers_) all.push_back(other);
  return all;
}

std::vector<std::string> ConsoleSteps::rank_remarks() const {
  std::vector<std::string> remarks;
  std::uint64_t of_ranks = 0, other_scales = 0;
  for (const auto& [scales, messages] : of_other_ranks_) {
    of_ranks += messages;
    if (!scales_of_rank_.contains(scales)) other_scales += messages;
  }
  if (of_ranks > 0) {
    const std::string same =
        other_scales == 0 ? "say the same and are skipped"
                          : fmt::format("are skipped; {} of them name other scales", other_scales);
    const std::string others =
        rank_ ? fmt::format("other ranks than {}", *rank_) : "ranks that are named";
    remarks.push_back(fmt::format("{} lines of {} {}", of_ranks, others, same));
  }
  if (survey_.paired) {
    remarks.push_back(
        "equal messages of one rank follow each other: two engines write to the log, such as an "
        "actor and a critic, or each line is printed twice; the number of skipped steps is a "
        "range, and the scales may be of both");
  }
  return remarks;
}

std::vector<std::string> ConsoleSteps::message_remarks() const {
  std::vector<std::string> remarks;
  std::uint64_t of_others = 0;
  for (const auto& [scaler, other] : other_scalers_) of_others += other.messages;
  if (of_others > 0) {
    remarks.push_back(fmt::format("{} lines are of another loss scaler than {} and are skipped",
                                  of_others, scaler_.value_or(0)));
  }
  if (named_.torn() > 0) {
    remarks.push_back(fmt::format(
        "{} lines that name an iteration are mixed with another process's output and have no step",
        named_.torn()));
  }
  if (repeated_ > 0) {
    remarks.push_back(fmt::format(
        "{} lines reduce the scale to what the line before did: the scale had grown between, or is "
        "at its minimum, or several ranks write to one log; each is counted as a skipped step",
        repeated_));
  }
  if (numbered_ && pending_count_.low > kMostHeld) {
    remarks.push_back(fmt::format("{} overflows have no step; the first {} are kept",
                                  pending_count_.low, kMostHeld));
  }
  if (interval_ && interval_told_ == 0 && skipped_ > 0) {
    remarks.push_back(
        "'number of skipped iterations' is 0 in every line although steps were skipped: DeepSpeed "
        "skips them, and Megatron-LM does not know; what DeepSpeed printed is counted");
  }
  return remarks;
}

std::vector<std::string> ConsoleSteps::step_remarks() const {
  std::vector<std::string> remarks;
  if (!counts_updates_.empty()) {
    remarks.push_back(counts_updates_ +
                      " counts applied updates: a step number here is that count plus the skipped "
                      "steps before it");
  }
  if (counts_batches_) {
    remarks.push_back(
        "the log counts batches from each epoch's beginning: an epoch is taken to end with its "
        "last printed batch, so step numbers after the first epoch are at least these");
  }
  if (not_counted_ > 0) {
    remarks.push_back(fmt::format(
        "{} {} of a skipped step without a scale and not counted: each rank prints such lines, and "
        "those that name the scale are counted; a step at which the scale stayed shows none",
        not_counted_, not_counted_ == 1 ? "line is" : "lines are"));
  }
  if (survey_.form == kEpochForm) {
    remarks.push_back("lines have an epoch and no step: the steps shown are epochs");
  }
  if (applied_ > 0) {
    remarks.push_back(fmt::format(
        "{} {} that gradients overflowed and the update was applied all the same: no step was "
        "skipped there",
        applied_, applied_ == 1 ? "line says" : "lines say"));
  }
  if (survey_.steps == StepSource::bar && any_step_) {
    remarks.push_back("no line has a step: steps are taken from the progress bar");
  }
  const bool entries = survey_.steps == StepSource::none && !any_step_;
  if (std::string filtered = filtered_.text(entries ? "entry" : "step"); !filtered.empty()) {
    remarks.push_back(std::move(filtered));
  }
  if (went_back_) {
    remarks.push_back(std::string("the run was restarted at an earlier step: earlier lines for "
                                  "that step and later ones are discarded, ") +
                      (of_either_run_ > 0
                           ? "and overflows just before the restart may be of either run"
                           : "and so are overflows just before the restart"));
  }
  return remarks;
}

std::vector<std::string> ConsoleSteps::remarks() const {
  std::vector<std::string> all = rank_remarks();
  std::ranges::move(message_remarks(), std::back_inserter(all));
  std::ranges::move(step_remarks(), std::back_inserter(all));
  return all;
}

}  // namespace halfscope::analyzers::readers::console
