// SPDX-License-Identifier: Apache-2.0
// Findings on an optimizer's state in 16 bits.
#include <fmt/format.h>

#include "reports/answer/adam_words.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;
using analyzers::updates::AdamState;

namespace {

std::string eps_text(const AdamState& state) {
  return fmt::format("Adam's eps{} {}", state.assumed_settings ? ", if it is PyTorch's" : " of",
                     state.eps) +
         (state.assumed_settings ? "," : "");
}

void eps(const AdamState& state, List& to) {
  if (!state.eps_is_zero || state.divides_by_zero()) return;  // adam_alarms() says it
  to.push_back({Severity::serious,
                fmt::format("{} is 0 in {}: where a second moment is 0, an update divides by 0.",
                            eps_text(state), held_text(state)),
                adam_cure_text(state), Evidence::updates});
}

/// Adds second moments that are 0 while eps still keeps updates finite.
void zeros(const Study& study, const AdamState& state, List& to) {
  if (state.eps_is_zero || state.lost.low == 0) return;
  const double share =
      static_cast<double>(state.lost.low) / static_cast<double>(state.moments.high);
  if (share < study.advice.asked.negligible_share) return;
  to.push_back({share >= study.advice.asked.serious_share ? Severity::serious : Severity::warning,
                fmt::format("{} are 0 in {} although their first moments are not: their updates "
                            "are divided by eps alone, and far too large.",
                            lost_moments_text(state), people_say(state.held_in)),
                adam_cure_text(state), Evidence::updates});
}

/// Adds gradients whose squares are too small to change a second moment.
void squares(const Study& study, const AdamState& state, List& to) {
  if (state.gradients.high == 0) return;
  const double share =
      static_cast<double>(state.adds_nothing.low) / static_cast<double>(state.gradients.high);
  if (share < study.advice.asked.negligible_share) return;
  to.push_back(
      {share >= study.advice.asked.serious_share ? Severity::serious : Severity::warning,
       fmt::format("Adam's second moments underflow in {}: {} of the gradients g are at most "
                   "{:.3g}, and the {:.3g} g^2 that they add is 0; of {} g^2 itself is.",
                   people_say(state.held_in), share_text(state.adds_nothing, state.gradients.high),
                   state.adds_nothing_to, 1 - state.beta2,
                   share_text(state.square_is_zero, state.gradients.high)),
       state.eps_is_zero ? "" : adam_cure_text(state), Evidence::updates});
}

}  // namespace

void adam(const Study& study, List& to) {
  for (const AdamState& state : study.adam) {
    eps(state, to);
    zeros(study, state, to);
    squares(study, state, to);
  }
}

}  // namespace halfscope::reports::answer::found
