// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/adam_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::updates::AdamState;

namespace {

/// Returns the smallest power of ten that is a normal number of the format.
double usable_eps(const AdamState& state) {
  return std::pow(10.0, std::ceil(format_of(state.held_in).emin() * std::log10(2.0)));
}

}  // namespace

std::string held_text(const AdamState& state) {
  return people_say(state.held_in) + (state.assumed_format
                                          ? ", in which PyTorch holds its state, as the weights are"
                                          : ", in which its state is held");
}

std::string lost_moments_text(const AdamState& state) {
  return fmt::format("{} of {} recorded second moments", count_text(state.lost),
                     count_text(state.moments));
}

std::string adam_cure_text(const AdamState& state) {
  const std::string masters =
      "Keep the state in FP32, as PyTorch does with FP32 parameters under torch.autocast.";
  if (!state.eps_is_zero) return masters;
  return fmt::format("{} Else set eps to {:g} or more.", masters, usable_eps(state));
}

namespace {

/// Returns the evidence that some update divided by 0.
std::string shown_by(const AdamState& state) {
  if (state.broken.empty())
    return lost_moments_text(state) + " are 0 although their first moments are not.";
  return fmt::format("{} {} NaN or infinities from step {}, the first of the log.",
                     listed_code(state.broken, 3), state.broken.size() == 1 ? "holds" : "hold",
                     state.broken_from);
}

}  // namespace

std::vector<AlarmWords> adam_alarms(const analyzers::Findings& found) {
  std::vector<AlarmWords> all;
  for (const AdamState& state : found.adam) {
    if (!state.divides_by_zero()) continue;
    all.push_back({fmt::format("Adam divides by 0: its eps of {} is 0 in {}, and {}", state.eps,
                               held_text(state), shown_by(state)),
                   adam_cure_text(state), true});
  }
  return all;
}

}  // namespace halfscope::reports::answer
