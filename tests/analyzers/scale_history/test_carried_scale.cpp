// SPDX-License-Identifier: Apache-2.0
// Whether gradients carry the scale that their log tells of.
#include "analyzers/scale_history/timeline_facts.hpp"

#include "catch.hpp"

namespace test_carried_scale {

using namespace halfscope;
using namespace halfscope::analyzers;

/// Ten steps of one gradient of this magnitude, at one loss scale.
underflow::LogFindings steps_of(double magnitude, double scale) {
  underflow::LogFindings log;
  log.name = "run";
  log.kinds.push_back(frames::LogKind{"TensorBoard histograms", {}});
  underflow::TensorFindings tensor;
  tensor.log = std::string("run");
  tensor.loss_scaled = true;
  for (std::int64_t step = 0; step < 10; ++step) {
    underflow::StepFindings findings;
    findings.step = step;
    findings.counts.finite_nonzero = 1;
    findings.max_abs = magnitude;
    tensor.per_step.push_back(findings);
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss_scale = scale;
    log.scalars.push_back(scalars);
  }
  log.tensors.push_back(tensor);
  return log;
}

TEST_CASE("carried scale: gradients that could not have been scaled once more", "[carried_scale]") {
  const auto found = scale_history::carried_scale(steps_of(1000, 4096));
  REQUIRE(found);
  CHECK(found->of == 10);
  CHECK(found->steps == 9);  // of the last one nobody knows whether it was skipped
  CHECK_FALSE(scale_history::carried_scale(steps_of(1000, 64)));
  CHECK_FALSE(scale_history::carried_scale(steps_of(1, 4096)));
  CHECK(scale_history::carried_scale(steps_of(65520.0 / 4096, 4096)));
  underflow::LogFindings joined = steps_of(1000, 4096);  // of several kinds in one folder
  joined.kinds[0].scale_tag = "amp/scale";
  joined.kinds.insert(joined.kinds.begin(), frames::LogKind{"console log", {}});
  joined.kinds.push_back(frames::LogKind{"CSV metrics", {}, false, "loss_scale"});
  CHECK(scale_history::carried_scale(joined)->tag == "amp/scale");
}

TEST_CASE("carried scale: not where steps were skipped, nor where it was told", "[carried_scale]") {
  underflow::LogFindings falling = steps_of(1000, 4096);
  for (std::size_t i = 0; i < 10; ++i) {
    falling.scalars[i].loss_scale = 4096.0 / static_cast<double>(1U << i);
  }
  CHECK_FALSE(scale_history::carried_scale(falling));
  underflow::LogFindings told = steps_of(1000, 4096);
  told.tensors[0].per_step.change([](auto& step) { step.scale = 4096; });
  CHECK_FALSE(scale_history::carried_scale(told));
  underflow::LogFindings own = steps_of(1000, 4096);
  own.kinds.clear();  // a run log says what its values carry
  CHECK_FALSE(scale_history::carried_scale(own));
  underflow::LogFindings bounded = steps_of(1000, 4096);
  bounded.tensors[0].per_step.change([](auto& step) { step.max_abs_at_least = 1; });
  CHECK_FALSE(scale_history::carried_scale(bounded));
}

}  // namespace test_carried_scale
