// SPDX-License-Identifier: Apache-2.0
// What is to be said of a console log beside its steps.
#include <fmt/format.h>

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
        other_scales == 0 ? "say the same and are left out"
                          : fmt::format("are left out; {} of them name other scales", other_scales);
    remarks.push_back(
        fmt::format("{} lines of other ranks than {} {}", of_ranks, rank_.value_or(0), same));
  }
  if (survey_.paired) {
    remarks.push_back(
        "equal messages of one rank follow each other: two engines print into it, such as an actor "
        "and a critic, or each line is printed twice; a range is given for the skipped steps, and "
        "the scales may be of both");
  }
  return remarks;
}

std::vector<std::string> ConsoleSteps::remarks() const {
  std::vector<std::string> remarks = rank_remarks();
  std::uint64_t of_others = 0;
  for (const auto& [scaler, other] : other_scalers_) of_others += other.messages;
  if (of_others > 0) {
    remarks.push_back(fmt::format("{} lines are of another loss scaler than {} and are left out",
                                  of_others, scaler_.value_or(0)));
  }
  if (named_.torn() > 0) {
    remarks.push_back(
        fmt::format("{} lines that name an iteration are torn by another process's "
                    "and tell no step",
                    named_.torn()));
  }
  if (repeated_ > 0) {
    remarks.push_back(fmt::format(
        "{} lines reduce the scale to what the line before did: the scale had grown between, or is "
        "at its minimum, or several ranks write into one log; each is counted as a skipped step",
        repeated_));
  }
  if (numbered_ && pending_count_.low > kMostHeld) {
    remarks.push_back(fmt::format("{} overflows tell no step; the first {} are kept",
                                  pending_count_.low, kMostHeld));
  }
  if (counts_updates_) {
    remarks.push_back(
        "num_updates counts applied updates: steps here are these and the skipped ones before");
  }
  if (survey_.steps == StepSource::bar && any_step_) {
    remarks.push_back("no line tells the step: steps are those of the progress bar");
  }
  if (went_back_) {
    remarks.push_back(
        std::string("the run was started again at an earlier step: what was printed of that step "
                    "and later ones before holds no more, ") +
        (of_either_run_ > 0 ? "and overflows just before it may be of either run"
                            : "nor do overflows just before it"));
  }
  return remarks;
}

}  // namespace halfscope::analyzers::readers::console
