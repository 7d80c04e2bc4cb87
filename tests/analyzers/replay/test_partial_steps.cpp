// SPDX-License-Identifier: Apache-2.0
// What is said of steps whose magnitudes are the least that they can be, and of the ends of scales.
#include <vector>

#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_partial_steps {
namespace {

TEST_CASE("Of a magnitude that may have been larger the power that holds it is an upper bound") {
  replay::StepSeries series;
  series.steps = {0};
  series.seen = {replay::AttemptMagnitudes{1 << 19, 0}};
  CHECK(replay::holds(series, 0).sure);
  CHECK(replay::holds(series, 0).text() == "2^-4");
  replay::weights_at_least(series);
  CHECK_FALSE(replay::holds(series, 0).sure);
  CHECK(replay::holds(series, 0).text() ==
        "at most 2^-4 (how much less is unknown: what was recorded is the least that it can be)");
}

TEST_CASE("No scale above 2^40 is the lowest of smallest magnitudes") {
  const auto lowest_of = [](const std::vector<double>& least) {
    underflow::Analysis analysis;
    analysis.logs.resize(1);
    for (const double min_abs : least) {
      analysis.logs[0].peaks.push_back(
          frames::StepPeak{log::Role::weight_grad, 0, 1, {}, "layer", {}, min_abs});
    }
    return underflow::lowest_log2_of_peaks(analysis);
  };
  CHECK(lowest_of({0x1.8p-65}) == 40);
  CHECK_FALSE(lowest_of({0x1p-65}));
  CHECK_FALSE(lowest_of({0x1p-300, 1}));
}

}  // namespace
}  // namespace halfscope::analyzers::test_partial_steps
