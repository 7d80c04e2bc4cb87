// SPDX-License-Identifier: Apache-2.0
// How many steps were skipped, at the most, where the scale alone tells of them.
#include "analyzers/scale_history/timeline_facts.hpp"

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_skip_counts {
namespace {

using scale_history::RunState;
using scale_history::TimelineFacts;

using Scales = std::vector<std::pair<std::int64_t, double>>;

underflow::Analysis with_lines(const Scales& lines) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (const auto& [step, scale] : lines) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss_scale = scale;
    scalars.loss = 1;
    analysis.logs[0].scalars.push_back(scalars);
  }
  return analysis;
}

TimelineFacts facts_of(underflow::Analysis analysis) {
  const auto facts = findings_of(std::move(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  return facts[0];
}

/// Lines every `apart` steps of a scale that grows after `window` clean steps, where gradients
/// overflow above `most`; and how many steps were skipped from the first line to the last.
struct Run {
  Scales lines;
  std::uint64_t skipped = 0;
};
Run run_of(std::int64_t steps, std::int64_t apart, int window, double scale, double most) {
  Run run;
  std::uint64_t skipped = 0, before = 0;
  int clean = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (step % apart == 0) {
      if (run.lines.empty()) before = skipped;
      run.lines.emplace_back(step, scale);
      run.skipped = skipped - before;
    }
    const bool overflows = scale > most;
    skipped += overflows ? 1 : 0;
    clean = overflows ? 0 : clean + 1;
    if (overflows) scale /= 2;
    if (clean == window) {
      scale *= 2;
      clean = 0;
    }
  }
  return run;
}

/// Lines every ten steps; the scale is doubled at every tenth of them, and halved at the next.
RunState state_of_lines(std::int64_t lines, std::int64_t doubled) {
  Scales scales;
  for (std::int64_t i = 1; i <= lines; ++i) {
    scales.emplace_back(10 * i, i % 10 == 0 && i <= 10 * doubled ? 131072 : 65536);
  }
  return facts_of(with_lines(scales)).state;
}

TEST_CASE("between lines a scale that fell may have grown and fallen at all steps") {
  CHECK(state_of_lines(105, 10) == RunState::unknown);  // 10 to 100 of 1041 steps
  CHECK(state_of_lines(105, 5) == RunState::normal);    // 5 to 50
  CHECK(state_of_lines(105, 0) == RunState::normal);
}

TEST_CASE("between lines no more is skipped than growth in 100 steps or more allows") {
  for (const int window : {100, 137, 400, 2000}) {
    for (const std::int64_t apart : {1, 2, 7, 50, 100, 333}) {
      for (const double start : {1.0, 0x1p17, 0x1p24}) {
        const Run run = run_of(6000, apart, window, start, 0x1p17);
        const TimelineFacts facts = facts_of(with_lines(run.lines));
        INFO("window " << window << ", " << apart << " apart, from " << start);
        CHECK(facts.halvings.low <= run.skipped);
        CHECK(run.skipped <= facts.halvings.high);
      }
    }
  }
}

TEST_CASE("a scale that doubles in fewer steps leaves open how many were skipped") {
  const Run fast = run_of(4000, 50, 10, 1, 0x1p17);
  const TimelineFacts facts = facts_of(with_lines(fast.lines));
  CHECK(facts.state == RunState::unknown);
  CHECK(fast.skipped <= facts.halvings.high);
  CHECK_FALSE(facts.window_taken);
  const Run twice = run_of(4000, 50, 50, 1, 0x1p17);  // one doubling a line
  CHECK(facts_of(with_lines(twice.lines)).state == RunState::unknown);
}

TEST_CASE(
    "lines of a scale that grows as frameworks have it say that it is normal, and until where") {
  const Run run = run_of(4000, 50, 400, 0x1p17, 0x1p17);
  const TimelineFacts facts = facts_of(with_lines(run.lines));
  CHECK(facts.state == RunState::normal);
  CHECK(facts.window_taken == 100);
  CHECK(facts.halvings.low == 0);
  CHECK(facts.halvings.high == 40);  // of 3951
  const TimelineFacts each = facts_of(with_lines(run_of(4000, 1, 400, 0x1p17, 0x1p17).lines));
  CHECK(each.halvings.low == each.halvings.high);
  // Set anew at once, to where the run began: no growth.
  Scales anew = {{50, 0x1p24}};
  for (std::int64_t step = 100; step <= 4000; step += 50) anew.emplace_back(step, 0x1p17);
  anew.emplace_back(4050, 0x1p24);
  CHECK(facts_of(with_lines(anew)).halvings.high == 50);  // around the fall
}

TEST_CASE("halvings are counted whatever the scales") {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].kinds = {{"CSV metrics", {frames::Gap::tensors}}};
  for (const double scale : {3 * 0x1p16, 3 * 0x1p14, 0x1p1023, 0x1p-1074}) {
    log::StepScalars scalars;
    scalars.step = static_cast<std::int64_t>(analysis.logs[0].scalars.size());
    scalars.loss_scale = scale;
    analysis.logs[0].scalars.push_back(scalars);
  }
  CHECK(facts_of(analysis).halvings.low == 2 + 1024);  // the ratio is beyond binary64
}

/// A run of which falls of the scale alone tell skipped steps: one fell at step 41.
RunState state_of_falls(std::int64_t steps, std::uint64_t skipped, double from, double to,
                        bool at_least) {
  Scales lines;
  for (std::int64_t step = 1; step <= steps; ++step)
    lines.emplace_back(step, step <= 41 ? from : to);
  underflow::Analysis analysis = with_lines(lines);
  analysis.logs[0].kinds[0].skips_at_least = at_least;
  analysis.logs[0].skips = {{.first = 41, .last = 41 + 9, .count = skipped}};
  return facts_of(std::move(analysis)).state;
}

TEST_CASE("where the scale's falls tell, hysteresis and a floor may hide skipped steps") {
  CHECK(state_of_falls(100, 5, 0x1p16, 0x1p11, false) == RunState::normal);
  CHECK(state_of_falls(100, 5, 0x1p16, 0x1p11, true) == RunState::unknown);  // or 6
  CHECK(state_of_falls(200, 5, 0x1p16, 0x1p11, true) == RunState::normal);
  CHECK(state_of_falls(200, 1, 512, 256, true) == RunState::unknown);  // any may follow at 256
}

}  // namespace
}  // namespace halfscope::analyzers::test_skip_counts
