// SPDX-License-Identifier: Apache-2.0
// What is said of Adam's state in 16 bits, and of a loss that seems to be a sum.
#include <string>

#include "catch.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::test_findings_adam {
namespace {

using analyzers::Study;
using analyzers::updates::AdamState;

/// An FP16 state of this eps, of which so many second moments are lost.
AdamState state(bool eps_is_zero, Interval lost) {
  AdamState out;
  out.held_in = Dtype::f16;
  out.eps = eps_is_zero ? 1e-8 : 1e-4;
  out.beta2 = 0.999;
  out.eps_is_zero = eps_is_zero;
  out.moments = 1000;
  out.lost = out.zero = lost;
  return out;
}

/// The findings of a study with this state, as text.
std::string said_of(const AdamState& state) {
  Study study;
  study.adam = {state};
  std::string text;
  for (const Finding& finding : findings(study)) {
    text += std::string(name_of(finding.severity)) + ": " + plain(text_of(finding)) + "\n";
  }
  return text;
}

TEST_CASE("Adam that divides by 0 breaks a run, and the cure is named", "[adam]") {
  CHECK(said_of(state(true, {30, 40})) ==
        "breaks: Adam divides by 0: its eps of 1e-08 is 0 in FP16, in which its state is held, and "
        "30 to 40 of 1,000 recorded second moments are 0 although their first moments are not. "
        "Keep the state in FP32, as PyTorch does with FP32 parameters under torch.autocast. Else "
        "set eps to 0.0001 or more.\n");
  const std::string may = said_of(state(true, {0, 40}));
  CHECK(may.starts_with("serious: Adam's eps of 1e-08 is 0 in FP16"));
  AdamState assumed = state(true, 0);
  assumed.assumed_settings = assumed.assumed_format = true;
  CHECK(said_of(assumed).starts_with(
      "serious: Adam's eps, if it is PyTorch's 1e-08, is 0 in FP16, in which PyTorch holds its "
      "state, as the weights are: where a second moment is 0"));
}

TEST_CASE("second moments that are lost are told by their share", "[adam]") {
  CHECK(said_of(state(false, 0)).empty());
  CHECK(said_of(state(false, 10)).starts_with("warning: 10 of 1,000 recorded second moments"));
  CHECK(said_of(state(false, 60)).starts_with("serious: 60 of 1,000"));
  AdamState squares = state(false, 0);
  squares.gradients = 1000;
  squares.adds_nothing = {900, 910};
  squares.adds_nothing_to = 0.00546;
  squares.square_is_zero = 20;
  CHECK(said_of(squares).starts_with(
      "serious: Adam's second moments underflow in FP16: 90.0 % to 91.0 % of the gradients g are "
      "at "
      "most 0.00546, and the 0.001 g^2 that they add is 0; of 2.00 % g^2 itself is."));
}

TEST_CASE("a loss too large for a mean is told where range is short", "[summed_loss]") {
  Study study;
  study.summed_loss = {.log = "run", .loss = 21443, .steps = 10};
  CHECK(findings(study).empty());
  study.advice.static_log2 = 10;
  CHECK(findings(study).empty());
  study.advice.static_log2 = 2;
  REQUIRE(findings(study).size() == 1);
  CHECK(findings(study)[0].title ==
        "The loss begins at 21443, and a mean of cross-entropies is at most 16.64. If it is a sum "
        "over tokens, gradients are more than 1,288 times too large, and 10 of FP16's binades are "
        "lost.");
}

}  // namespace
}  // namespace halfscope::reports::answer::test_findings_adam
