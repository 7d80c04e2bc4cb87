// SPDX-License-Identifier: Apache-2.0
// Findings on Adam's state in 16-bit formats.
#include <fmt/format.h>

#include <cmath>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::updates::AdamState;

namespace {

/// Returns the format of the state, for example "FP16, in which its state is held".
std::string held_text(const AdamState& state) {
  return people_say(state.held_in) + (state.assumed_format
                                          ? ", in which PyTorch holds its state, as the weights are"
                                          : ", in which its state is held");
}

/// For example "3 of 40 recorded second moments".
std::string lost_moments_text(const AdamState& state) {
  return fmt::format("{} of {} recorded second moments", count_text(state.lost),
                     count_text(state.moments));
}

std::string cure_text(const AdamState& state) {
  const std::string masters =
      "Keep the state in FP32, as PyTorch does with FP32 parameters under torch.autocast.";
  if (!state.eps_is_zero) return masters;
  // the smallest power of ten that is a normal number of the format
  const double usable =
      std::pow(10.0, std::ceil(format_of(state.held_in).emin() * std::log10(2.0)));
  return fmt::format("{} Else set eps to {:g} or more.", masters, usable);
}

/// Returns the evidence that some update divided by 0.
std::string shown_by(const AdamState& state) {
  if (state.broken.empty())
    return lost_moments_text(state) + " are 0 although their first moments are not.";
  return fmt::format("{} {} NaN or infinities from step {}, the first of the log.",
                     listed_code(state.broken, 3), state.broken.size() == 1 ? "holds" : "hold",
                     state.broken_from);
}

std::string eps_text(const AdamState& state) {
  return fmt::format(fmt::runtime(state.assumed_settings ? "Adam's eps, if it is PyTorch's {},"
                                                         : "Adam's eps of {}"),
                     state.eps);
}

/// Returns the severity of a loss of this share. Empty if it is negligible.
std::optional<Severity> severity_of(const Study& study, const Interval& lost, const Interval& of) {
  if (of.high == 0) return std::nullopt;
  const double share = static_cast<double>(lost.low) / static_cast<double>(of.high);
  if (share < study.advice.asked.negligible_share) return std::nullopt;
  return share >= study.advice.asked.serious_share ? Severity::serious : Severity::warning;
}

/// Adds second moments that are 0 while eps still keeps updates finite.
void zeros(const Study& study, const AdamState& state, std::vector<Finding>& to) {
  const auto severity = severity_of(study, state.lost, state.moments);
  if (state.lost.low == 0 || !severity) return;
  to.push_back({*severity,
                fmt::format("{} are 0 in {} although their first moments are not: their updates "
                            "are divided by eps alone, and far too large.",
                            lost_moments_text(state), people_say(state.held_in)),
                cure_text(state)});
}

/// Adds gradients whose squares are too small to change a second moment.
void squares(const Study& study, const AdamState& state, std::vector<Finding>& to) {
  const auto severity = severity_of(study, state.adds_nothing, state.gradients);
  if (!severity) return;
  to.push_back(
      {*severity,
       fmt::format("Adam's second moments underflow in {}: {} of the gradients g are at most "
                   "{:.3g}, and the {:.3g} g^2 that they add is 0; of {} g^2 itself is.",
                   people_say(state.held_in), share_text(state.adds_nothing, state.gradients.high),
                   state.adds_nothing_to, 1 - state.beta2,
                   share_text(state.square_is_zero, state.gradients.high)),
       state.eps_is_zero ? "" : cure_text(state)});
}

}  // namespace

std::vector<Finding> adam_divisions(const analyzers::Findings& found) {
  std::vector<Finding> all;
  for (const AdamState& state : found.adam) {
    if (!state.divides_by_zero()) continue;
    all.push_back({Severity::breaks,
                   fmt::format("Adam divides by 0: its eps of {} is 0 in {}, and {}", state.eps,
                               held_text(state), shown_by(state)),
                   cure_text(state)});
  }
  return all;
}

void find_adam_losses(const Study& study, std::vector<Finding>& to) {
  for (const AdamState& state : study.adam) {
    if (!state.eps_is_zero) {
      zeros(study, state, to);
    } else if (!state.divides_by_zero()) {
      to.push_back({Severity::serious,
                    fmt::format("{} is 0 in {}: where a second moment is 0, an update divides by "
                                "0.",
                                eps_text(state), held_text(state)),
                    cure_text(state)});
    }
    squares(study, state, to);
  }
}

}  // namespace halfscope::reports::answer
